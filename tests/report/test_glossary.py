from __future__ import annotations

import re
from pathlib import Path

import pytest
from builders import race_by_hand

from polarbear_plugins.plugins.manager import Plugins
from polarbear_plugins.report import render
from polarbear_plugins.report.computed import Computed
from polarbear_plugins.report.glossary import TERMS, glossary_page, words_section

NAMED = {"rating", "P(best)", "support", "dominated", "equivalent", "settled", "alpha", "epsilon", "instance"}
NAMED |= {"timepoint", "budget", "posterior", "regret", "Pareto set"}


def test_the_page_of_the_documentation_is_made_of_the_same_words(root: Path) -> None:
    # To write it: python -c "from polarbear_plugins.report.glossary import *; print(glossary_page(), end='')"
    assert (root / "docs" / "why" / "glossary.md").read_text() == glossary_page()


def test_the_report_ends_with_the_words_and_its_links_to_them_lead_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("polarbear_plugins.report.figures.MOST_NAMES", 0)  # no pictures, which take most of the time
    page = render(race_by_hand(), plugins=Plugins(), known=Computed())
    assert page.index('<section id="words"><h2>Words</h2>') == page.rindex("<section ")
    assert words_section() in page
    wanted = set(re.findall(r'href="#(word-[^"]+)"', page))
    assert {"word-rating", "word-p-best", "word-support", "word-posterior", "word-equivalent"} <= wanted
    assert wanted <= {term.anchor for term in TERMS}


def test_every_word_that_a_reader_needs_is_there_once() -> None:
    assert [term.word for term in TERMS if term.word in NAMED] == [term.word for term in TERMS]
    assert len({term.anchor for term in TERMS}) == len(NAMED)


@pytest.mark.parametrize(
    ("word", "says"),
    [
        ("rating", "the best of all at a timepoint"),
        ("rating", "More instances make a rating better known, not higher."),
        ("P(best)", "It is about what is known, not about the next instance"),
        ("P(best)", "better by very little"),
        ("support", "no more than 55 of 100"),
        ("support", "Below 95 %"),
        ("posterior", "it rests on the model and on the prior"),
        ("dominated", "One and the same rival has the higher rating at every timepoint"),
        ("dominated", "need not be good"),
        ("alpha", "that one of many decisions is wrong is more probable"),
        ("instance", "about other kinds of problems nothing is said"),
    ],
)
def test_a_word_says_what_it_does_not_promise(word: str, says: str) -> None:
    [term] = [term for term in TERMS if term.word == word]
    assert says in term.means
