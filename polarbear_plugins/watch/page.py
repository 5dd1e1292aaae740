"""The page: the report of the newest round, and above it how the race is doing now."""

from __future__ import annotations

import base64
import functools
import hashlib
import html
import re
from importlib.resources import files

from polarbear_plugins.display.html import Markup, definitions, text
from polarbear_plugins.errors import SourceError
from polarbear_plugins.watch.reports import Report
from polarbear_plugins.watch.status import Status

_POLICY = re.compile(r'<meta http-equiv="Content-Security-Policy" content="([^"]*)">\n?')
_BODY = re.compile(r"<body[^>]*>")
_NO_REPORT = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"


def page_of(status: Status, report: Report | None, title: str) -> tuple[str, str]:
    """HTML of the page, and its Content-Security-Policy.

    Scripts run only if their hash is in the policy: that of the report, if it has one, and ours.  They talk to nobody
    but the server that the page comes from.
    """
    script = _asset("strip.js")
    if report is None:
        page, policy = _empty_page(title), _NO_REPORT
    else:
        page, policy = _without_policy(report.html)
    opening = _BODY.search(page)
    before, ending, after = page.rpartition("</body>")
    if opening is None or not ending:
        raise SourceError("The report has no body: it was not written by this version of polarbear-plugins.")
    head = before[: opening.end()].replace("</head>", f"<style>{_asset('strip.css')}</style>\n</head>", 1)
    strip = _strip(status, "" if report is None else report.key)
    page = f"{head}\n{strip}{before[opening.end() :]}<script>{script}</script>\n{ending}{after}"
    return page, _policy_with(policy, script)


def _strip(status: Status, key: str) -> Markup:
    return Markup(
        f'<section class="race" id="race" aria-label="The race now" data-report="{text(key)}">\n'
        f'<p class="race-says" id="race-says" role="status" data-phase="{text(status.phase)}">{text(status.says)}</p>\n'
        f'<div id="race-lines">{definitions(status.lines())}</div>\n'
        '<p class="race-problem" id="race-problem" role="alert" hidden></p>\n'
        '<p class="race-controls"><button type="button" id="race-stop" hidden>Stop after this round</button>'
        '<span id="race-stop-says"></span>'
        '<button type="button" id="race-show" hidden>Show the newest round</button>'
        '<label><input type="checkbox" id="race-follow" checked> show each new round at once</label></p>\n'
        "<noscript><p>Without JavaScript this page is not updated: reload it.</p></noscript>\n</section>\n"
    )


def _empty_page(title: str) -> str:
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{text(title)}</title>\n<style>{_asset('empty.css')}</style>\n</head>\n<body>\n<main>\n"
        f"<h1>{text(title)}</h1>\n<p>The report of the newest round appears here when it has been made.</p>\n</main>\n"
        "</body>\n</html>\n"
    )


def _without_policy(page: str) -> tuple[str, str]:
    """A report without its policy, and that policy: of two, only what both allow would be allowed."""
    found = _POLICY.search(page)
    if found is None:
        raise SourceError("The report has no Content-Security-Policy: it was not written by polarbear-plugins.")
    return page[: found.start()] + page[found.end() :], html.unescape(found[1])


def _policy_with(policy: str, script: str) -> str:
    """Policy that also allows our script, which may ask our server; the page is not to be framed."""
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    rules = {name: rest for name, _, rest in (part.strip().partition(" ") for part in policy.split(";")) if name}
    allowed = [source for source in rules.get("script-src", "").split() if source != "'none'"]
    rules |= {"script-src": " ".join([*allowed, f"'sha256-{digest}'"]), "connect-src": "'self'"}
    rules["frame-ancestors"] = "'none'"
    return "; ".join(f"{name} {rest}" for name, rest in rules.items())


@functools.cache
def _asset(name: str) -> str:
    return (files("polarbear_plugins.watch") / "assets" / name).read_text(encoding="utf-8")
