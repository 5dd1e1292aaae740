from __future__ import annotations

import re
import tomllib
from pathlib import Path

# Read without a parser of YAML, which the tests do not have: the file uses the simplest forms only.
LINE = re.compile(r'(?P<indent> *)(?P<item>- )?(?:(?P<key>[a-z][a-z-]*):)?(?: ?(?P<value>"[^"]*"|[^"#:]+))?')


def _top(root: Path) -> dict[str, str]:
    """Keys without indentation, with their values."""
    found = {}
    for line in (root / "CITATION.cff").read_text().splitlines():
        match = LINE.fullmatch(line)
        assert match is not None, f"not a simple line: {line!r}"
        if not match["indent"] and not match["item"]:
            assert match["key"] not in found, f"{match['key']} is there twice"
            found[match["key"]] = (match["value"] or "").strip('"')
    return found


def _below(root: Path, key: str) -> str:
    [block] = re.findall(rf"^{key}:\n((?: .*\n)+)", (root / "CITATION.cff").read_text(), flags=re.MULTILINE)
    return str(block)


def test_the_citation_has_what_the_format_asks_for(root: Path) -> None:
    top = _top(root)
    assert top["cff-version"] == "1.2.0"
    assert {"message", "title", "authors"} <= set(top)
    assert set(top) <= {
        *("cff-version", "message", "title", "authors", "abstract", "type", "version", "license", "keywords"),
        "references",
    }
    assert top["type"] in ("software", "dataset")


def test_the_citation_and_the_package_agree(root: Path) -> None:
    project, top = tomllib.loads((root / "pyproject.toml").read_text())["project"], _top(root)
    assert (top["title"], top["version"], top["license"]) == (project["name"], project["version"], project["license"])
    assert top["abstract"] == project["description"]
    assert re.findall(r'^  - name: "(.*)"$', _below(root, "authors"), flags=re.MULTILINE) == [
        author["name"] for author in project["authors"]
    ]
    assert re.findall(r"^  - (.*)$", _below(root, "keywords"), flags=re.MULTILINE) == project["keywords"]


def test_the_paper_is_cited_with_type_title_authors_and_year(root: Path) -> None:
    paper = _below(root, "references")
    assert re.search(r"^  - type: article\n    title: \"", paper)
    assert re.search(r"^    year: \d{4}$", paper, flags=re.MULTILINE)
    given, family = (
        re.findall(rf"^ +(?:- )?{part}-names: \S+$", paper, flags=re.MULTILINE) for part in ("given", "family")
    )
    assert len(given) == len(family) == 5
