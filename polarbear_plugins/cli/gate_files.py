"""A gate as a comment for a pull request, and as JUnit XML."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET

from polarbear_plugins.cli.gate_words import ROW, caveats, conclusion, heading, names_of, row_of
from polarbear_plugins.display.text import visible
from polarbear_plugins.measures.gates import Gate

_PUNCTUATION = re.compile(r"[!-/:-@\[-`{-~]")
_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def markdown_of(gate: Gate) -> str:
    """Comment for a pull request; names of others cannot format it, link or notify anybody."""
    right = [column.startswith(">") for column in ROW]
    lines = [f"**{conclusion(gate, _code)}**"]
    for comparison in gate.comparisons:
        lines += ["", heading(comparison, gate, _code), ""]
        lines.append(f"| {' | '.join(column.removeprefix('>') for column in ROW)} |")
        lines.append(f"| {' | '.join('---:' if aligned else '---' for aligned in right)} |")
        lines += [f"| {' | '.join(row_of(each))} |" for each in comparison.verdicts]
        lines.append("")
        lines += [f"- {sentence}" for sentence in caveats(comparison, gate)]
    return "\n".join([*lines, ""])


def junit_of(gate: Gate) -> str:
    """JUnit XML: a test case for each algorithm and budget, and one for a required "better"."""
    suite = ET.Element("testsuite", name="polarbear gate")
    tests = failures = skipped = 0
    for comparison in gate.comparisons:
        name = _xml(names_of(comparison))
        notes = "\n".join([heading(comparison, gate), *caveats(comparison, gate)])
        for each in comparison.verdicts:
            case = ET.SubElement(suite, "testcase", classname=name, name=f"budget {each.budget:,.6g}", time="0")
            tests += 1
            text = ", ".join(
                f"{column.removeprefix('>')} {cell}" for column, cell in zip(ROW[1:], row_of(each)[1:], strict=True)
            )
            if each.fails:
                failures += 1
                kind = each.verdict or "not compared"
                failure = ET.SubElement(case, "failure", type=kind, message=f"{kind} at {each.budget:,.6g}: {text}")
                failure.text = _xml(notes)
            elif each.verdict is None:
                skipped += 1
                ET.SubElement(case, "skipped", message="no pair of runs was watched until this budget")
            ET.SubElement(case, "system-out").text = _xml(f"{text}\n{notes}")
        if gate.require_better:
            case = ET.SubElement(suite, "testcase", classname=name, name="better at some budget", time="0")
            tests += 1
            if comparison.new in gate.missing_better:
                failures += 1
                ET.SubElement(case, "failure", type="required", message="better at no budget").text = _xml(notes)
    suite.attrib |= {"tests": str(tests), "failures": str(failures), "errors": "0", "skipped": str(skipped)}
    ET.indent(suite)
    return f"<?xml version='1.0' encoding='utf-8'?>\n{ET.tostring(suite, encoding='unicode')}\n"


def _code(name: str) -> str:
    """A name as code, in which every character stands for itself."""
    line = " ".join(visible(name).split())
    return f"<code>{_PUNCTUATION.sub(lambda found: f'&#{ord(found[0])};', line)}</code>"


def _xml(text: str) -> str:
    """Text without characters that XML does not have, which are written as JSON escapes."""
    return _NOT_XML.sub(lambda found: f"\\u{ord(found[0]):04x}", visible(text))
