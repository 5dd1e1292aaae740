"""Messages between a race and its workers, and what else may come through the same socket."""

from __future__ import annotations

import contextlib
import secrets
import threading
from collections.abc import Iterator

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from polarbear_plugins.execution import channel as channels
from polarbear_plugins.execution.channel import Channel, GarbledError, channel_pair


@contextlib.contextmanager
def connected() -> Iterator[tuple[Channel, Channel]]:
    """Both ends, closed afterwards."""
    ours, theirs = channel_pair()
    with ours.end, theirs.end:
        yield ours, theirs


SMALL = st.binary(max_size=200)


@given(st.lists(SMALL, max_size=5))
def test_messages_arrive_in_order(messages: list[bytes]) -> None:
    with connected() as (ours, theirs):
        for message in messages:
            theirs.send(message)
            theirs.send(message)
            assert list(ours.received()) == [message, message]
            ours.begin_send(message)
            assert not ours.send_more()
            assert theirs.receive() == message
        assert list(ours.received()) == []


@given(st.binary(min_size=1, max_size=200), SMALL)
def test_garbage_is_recognised_at_once_and_never_waited_for(garbage: bytes, message: bytes) -> None:
    with connected() as (ours, theirs):
        assume(not ours.secret.startswith(garbage[:16]))  # the secret is random, and short garbage may begin as it does
        theirs.end.sendall(garbage)
        with pytest.raises(GarbledError, match="something else than a message"):
            list(ours.received())
        theirs.send(message)
        with pytest.raises(GarbledError):  # also afterwards: what follows garbage is not a message
            list(ours.received())


@given(SMALL, st.binary(min_size=1, max_size=50), st.integers(16, 400))
def test_garbage_inside_a_message_spoils_it(message: bytes, garbage: bytes, place: int) -> None:
    with connected() as (ours, theirs):
        whole = theirs._header(message) + message
        place = min(place, len(whole) - 1) if message else 16
        spoiled = whole[:place] + garbage + whole[place:]
        theirs.end.sendall(spoiled)
        try:
            found = list(ours.received())
        except GarbledError:
            found = []
        assert found in ([], [message])  # the latter if the garbage repeats what it displaces
        if found:
            assert spoiled.startswith(whole)


def test_part_of_a_message_is_waited_for_without_blocking() -> None:
    with connected() as (ours, theirs):
        whole = theirs._header(b"hello") + b"hello"
        for byte in range(len(whole)):
            assert list(ours.received()) == []
            theirs.end.sendall(whole[byte : byte + 1])
        assert list(ours.received()) == [b"hello"]


def test_a_length_beyond_the_limit_is_refused_before_it_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    with connected() as (ours, theirs):
        monkeypatch.setattr(channels, "LARGEST", 4)
        theirs.end.sendall(theirs._header(b"hello"))
        with pytest.raises(GarbledError, match="a message of 5 bytes arrived, and the largest may have 4"):
            list(ours.received())


def test_the_message_of_another_worker_is_garbage() -> None:
    with connected() as (ours, theirs):
        Channel(theirs.end, secrets.token_bytes(16)).send(b"hello")
        with pytest.raises(GarbledError):
            list(ours.received())


def test_a_large_message_is_sent_without_waiting_for_the_reader() -> None:
    with connected() as (ours, theirs):
        message = bytes(range(256)) * 40_000
        ours.begin_send(message)
        assert ours.send_more()  # more than the socket takes at once
        assert ours.send_more()
        found: list[bytes] = []
        reader = threading.Thread(target=lambda: found.append(theirs.receive()))
        reader.start()
        while ours.send_more():
            pass
        reader.join()
        assert found == [message]


def test_the_end_of_the_other_side_is_an_end() -> None:
    with connected() as (ours, theirs):
        theirs.send(b"last")
        theirs.close()
        received = ours.received()
        assert next(received) == b"last"
        with pytest.raises(EOFError):
            list(ours.received())
        ours.begin_send(b"?")
        with pytest.raises(OSError, match=r"Broken pipe|reset|closed"):
            ours.send_more()
