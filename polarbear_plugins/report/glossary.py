"""The words of reports and commands, explained: the source of the report's last section and of the glossary page."""

from __future__ import annotations

import textwrap
from typing import NamedTuple

from polarbear_plugins.display.html import Markup, text


class Term(NamedTuple):
    """A word, what it means, and where the documentation says more: a title and an address seen from docs/why."""

    word: str
    means: str
    more: str
    address: str

    @property
    def anchor(self) -> str:
        """Id of its explanation in a page."""
        kept = "".join(letter if letter.isalnum() else "-" for letter in self.word.lower())
        return f"word-{kept.strip('-')}"


TERMS = (
    Term(
        "instance",
        "One problem on which the algorithms are compared: a function, a dataset, a fold. A new instance is one more "
        "from where those in the data came from; about other kinds of problems nothing is said.",
        "when results are wrong",
        "wrong.md",
    ),
    Term(
        "timepoint",
        "A number of evaluations, of seconds or of another cost at which the algorithms are ranked on each instance by "
        "their best values so far. Nothing is said about times before the first and after the last timepoint.",
        "rankings",
        "../guide/rankings.md",
    ),
    Term(
        "budget",
        "How long the later user lets an algorithm run. It counts at the last timepoint that it reaches.",
        "selection",
        "../guide/selection.md",
    ),
    Term(
        "rating",
        "The share of new instances on which an algorithm would be the best of all at a timepoint, if rankings follow "
        "the model. A rating of 0.41 means: on about 41 of 100 new instances. The ratings at a timepoint add up to 1, "
        "so that of five equal algorithms each has 0.2. More instances make a rating better known, not higher. On real "
        "runs it can differ from the share of first places by more than its interval says, and with few instances no "
        "check notices: compare it with what was counted.",
        "what a rating is",
        "ratings.md",
    ),
    Term(
        "posterior",
        "What is known about the ratings after the data were seen: many draws of ratings that agree with the rankings. "
        "A probability in a report is a share of these draws, so it rests on the model and on the prior.",
        "from rankings to ratings",
        "ratings.md#from-rankings-to-ratings",
    ),
    Term(
        "P(best)",
        "The probability that no other algorithm that is left has a higher rating. It is about what is known, not "
        "about the next instance: the rating says how much a lead matters, P(best) how sure the lead is. With enough "
        "instances P(best) approaches 1 for an algorithm that is better by very little.",
        "what a rating is",
        "ratings.md",
    ),
    Term(
        "support",
        "The probability that nothing is noticeably better than the choice: that the best of the others beats it on no "
        "more than 55 of 100 new instances. Below 95 % no choice is supported, and the candidates are named instead.",
        "selection",
        "../guide/selection.md",
    ),
    Term(
        "dominated",
        "One and the same rival has the higher rating at every timepoint (under the rule anytime-valid: beats it on "
        "most instances). An algorithm is eliminated once that is sure enough: see alpha. One that is not eliminated "
        "need not be good.",
        "alpha and epsilon",
        "decisions.md",
    ),
    Term(
        "Pareto set",
        "The algorithms that were not eliminated: each of them may be the right one for some budget.",
        "what is claimed",
        "decisions.md#what-is-claimed",
    ),
    Term(
        "equivalent",
        "Two algorithms beat each other about equally often: each wins on 50 of 100 new instances, give or take what "
        "epsilon allows.",
        "alpha and epsilon",
        "decisions.md",
    ),
    Term(
        "settled",
        "A pair is settled once it is sure enough at every timepoint which of the two is better, or that they are "
        "equivalent. With crossing resolution it is also settled once it is sure enough that neither dominates the "
        "other. Other pairs are open.",
        "strict or crossing",
        "decisions.md#strict-or-crossing",
    ),
    Term(
        "alpha",
        "The probability that a decision needs before it is made, 0.99 unless set otherwise. It is meant for each "
        "decision by itself: that one of many decisions is wrong is more probable.",
        "what is claimed",
        "decisions.md#what-is-claimed",
    ),
    Term(
        "epsilon",
        "The difference that is too small to matter, 0.05 unless set otherwise: two algorithms are equivalent if each "
        "beats the other with a probability between 0.45 and 0.55.",
        "alpha and epsilon",
        "decisions.md",
    ),
    Term(
        "regret",
        "How much a choice would lose on average, because it is not known which algorithm is the best: the value of "
        "the best choice minus that of this one. A value is a rating over the budgets that matter, so a regret of 0.02 "
        "means: the best choice would be the best on about 2 more of 100 new instances.",
        "selection",
        "../guide/selection.md",
    ),
)

_BY_WORD = {term.word: term for term in TERMS}


def linked(word: str, shown: str | None = None) -> Markup:
    """Link to the explanation of a word in the report, shown as another form of it if need be.

    >>> linked("rating", "Ratings")
    '<a href="#word-rating">Ratings</a>'
    """
    return Markup(f'<a href="#{_BY_WORD[word].anchor}">{text(shown or word)}</a>')


def words_section() -> Markup:
    """Last section of a report."""
    entries = "".join(f'<dt id="{term.anchor}">{text(term.word)}</dt><dd>{text(term.means)}</dd>' for term in TERMS)
    return Markup(f"<dl>{entries}</dl>")


def glossary_page() -> str:
    """Text of docs/why/glossary.md; a test compares them."""
    entries = [f"**{term.word}**: {term.means} ([{term.more}]({term.address}))" for term in TERMS]
    opening = (
        "The words of the terminal, of reports and of `polarbear select`, for people who are not statisticians. A "
        "report ends with the same list."
    )
    paragraphs = (textwrap.fill(each, 120, break_long_words=False, break_on_hyphens=False) for each in entries)
    return "\n\n".join(["# Words", textwrap.fill(opening, 120), *paragraphs]) + "\n"
