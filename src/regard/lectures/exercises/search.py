"""Exercises on decoding, with a made-up model of a few tokens."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch

from regard.base.shapes import Tensor
from regard.lectures.exercises.exercise import (
    Check,
    Exercise,
    Function,
    MistakeError,
    WrongVersion,
    call,
)

BEGIN, END, VOCAB = 0, 1, 6
MOST_CALLS = 1_000
NextScores = Callable[[Sequence[int]], Tensor]


def model(seed: int) -> NextScores:
    """Return a model: log-probabilities of the next token, which depend on the whole prefix."""

    def step(prefix: Sequence[int]) -> Tensor:
        number = seed
        for token in prefix:
            number = (number * 31 + int(token) + 7) % 1_000_003
        random = torch.Generator().manual_seed(number)
        scores = torch.randn(VOCAB, generator=random) * 1.5
        scores[BEGIN] = -1e9
        return torch.log_softmax(scores, 0)

    return step


def garden_path(prefix: Sequence[int]) -> Tensor:
    """Return log p of a model whose best output does not begin with its best token."""
    table = {(): {2: 0.6, 3: 0.4}, (2,): {1: 0.3, 4: 0.3, 5: 0.4}, (3,): {1: 0.95, 4: 0.05}}
    found = table.get(tuple(int(token) for token in prefix if token != BEGIN), {1: 0.9, 4: 0.1})
    return torch.tensor([found.get(token, 1e-9) for token in range(VOCAB)]).log()


def greedy(step: NextScores, begin: int, end: int, longest: int) -> list[int]:
    """Return the most probable token at each step until the end mark."""
    tokens: list[int] = []
    while len(tokens) < longest:
        token = int(step([begin, *tokens]).argmax())
        if token == end:
            break
        tokens.append(token)
    return tokens


def _greedy(change: str) -> Function:
    def wrong(step: NextScores, begin: int, end: int, longest: int) -> list[int]:
        tokens: list[int] = []
        while len(tokens) < longest:
            prefix = [begin, *tokens[-1:]] if change == "prefix" else [begin, *tokens]
            token = int(step(tokens if change == "begin" else prefix).argmax())
            if token == end and change != "end ignored":
                if change == "end kept":
                    tokens.append(token)
                break
            tokens.append(token)
        return [begin, *tokens] if change == "begin kept" else tokens

    return wrong


def _as_list(found: object) -> list[int]:
    if isinstance(found, Tensor):
        found = found.tolist()
    if not isinstance(found, list | tuple) or not all(isinstance(t, int) for t in found):
        raise MistakeError("It must return a list of token numbers.")
    return list(found)


def _ends(*given: int) -> Check:
    """Return a check against searches that go on for ever; the model counts its calls."""

    def check(solution: Function) -> None:
        calls = 0

        def endless(prefix: Sequence[int]) -> Tensor:
            nonlocal calls
            calls += 1
            if calls > MOST_CALLS:
                raise MistakeError("It never ends: the output may have `longest` tokens at most.")
            return torch.tensor([0.01, 0.01, 0.9, 0.05, 0.02, 0.01]).log()

        try:
            call(solution, endless, *given)
        except MistakeError as mistake:
            if isinstance(mistake.__cause__, MistakeError):
                raise mistake.__cause__ from None
            raise

    return check


GREEDY = Exercise(
    name="greedy",
    title="Greedy decoding",
    topic="attention in recurrent decoders",
    task="Take the most probable next token until it is `end`, or until there are `longest` "
    "tokens. step(prefix) returns log p of every next token; the prefix is a list that begins with "
    "`begin`. Return the tokens without `begin` and `end`.",
    starter='''def greedy(step, begin, end, longest):
    """-> list of tokens, without begin and end"""
    raise NotImplementedError
''',
    reference=greedy,
    cases=lambda: [
        (model(seed), BEGIN, END, longest) for seed in range(6) for longest in (1, 4, 9)
    ],
    preconditions=(_ends(BEGIN, END, 5),),
    wrong=(
        WrongVersion(_greedy("end kept"), "The end mark is part of the output: leave it out."),
        WrongVersion(_greedy("begin kept"), "The begin mark is part of the output: leave it out."),
        WrongVersion(
            _greedy("end ignored"), "It goes on after the end mark: stop when `end` is the best."
        ),
        WrongVersion(
            _greedy("prefix"),
            "The model sees the last token alone: give it the whole prefix, or its state.",
        ),
        WrongVersion(_greedy("begin"), "The prefix must begin with `begin`, also at first."),
    ),
)


def beam_search(step: NextScores, begin: int, end: int, beam: int, longest: int) -> list[int]:
    """Return the hypothesis with the highest log p that the beam finds, ended or at the limit."""
    return _beam(step, begin, end, beam, longest)


def _beam(
    step: NextScores, begin: int, end: int, beam: int, longest: int, change: str = ""
) -> list[int]:
    alive: list[tuple[float, list[int]]] = [(0.0, [])]
    done: list[tuple[float, list[int]]] = []
    for length in range(longest + 1):
        grown = []
        for total, tokens in alive:
            values = step([begin, *tokens])
            if change == "probabilities":
                values = values.exp()
            done.append((total + float(values[end]), tokens))
            if length < longest:
                start = 0.0 if change == "last" else total
                grown += [
                    (start + float(value), [*tokens, token])
                    for token, value in enumerate(values)
                    if token != end
                ]
        if change == "each" and length > 0:
            best = {tuple(tokens[:-1]): (-1e30, tokens) for _, tokens in grown}
            for total, tokens in grown:
                best[tuple(tokens[:-1])] = max(best[tuple(tokens[:-1])], (total, tokens))
            grown = list(best.values())
        grown.sort(key=lambda one: one[0], reverse=True)
        alive = grown[: 1 if change == "one" else beam]
    if change == "average":
        return max(done, key=lambda one: one[0] / (len(one[1]) + 1))[1]
    return max(done, key=lambda one: one[0])[1]


def _beam_without(change: str) -> Function:
    def wrong(step: NextScores, begin: int, end: int, beam: int, longest: int) -> list[int]:
        return _beam(step, begin, end, beam, longest, change)

    return wrong


def _leaves_the_garden_path(solution: Function) -> None:
    if _as_list(call(solution, garden_path, BEGIN, END, 2, 4)) == [2, 5]:
        raise MistakeError(
            "It follows the best first token only, as a greedy search does: keep `beam` prefixes "
            "alive and compare what all of them grow into."
        )


BEAM_SEARCH = Exercise(
    name="beam-search",
    title="Beam search",
    topic="attention in recurrent decoders",
    task="Keep the `beam` prefixes with the highest log p. At each step every live prefix may end "
    "(a finished hypothesis, log p of `end` included, which takes no place of the beam) or grow by "
    "one token; of all grown ones the best `beam` live on. With `longest` tokens a prefix can only "
    "end. Return the tokens of the finished hypothesis with the highest log p: no length penalty.",
    starter='''def beam_search(step, begin, end, beam, longest):
    """step(prefix) -> log p of every next token; the prefix begins with `begin`
    -> list of tokens, without begin and end"""
    raise NotImplementedError
''',
    reference=beam_search,
    cases=lambda: [
        (model(seed), BEGIN, END, beam, 5) for seed in range(20, 45) for beam in (1, 2, 4)
    ],
    preconditions=(_ends(BEGIN, END, 3, 5),),
    checks=(_leaves_the_garden_path,),
    wrong=(
        WrongVersion(
            _beam_without("one"),
            "Only one prefix lives on: keep the best `beam` of all grown ones.",
        ),
        WrongVersion(
            _beam_without("each"),
            "Each prefix keeps its own best continuation: the best `beam` of all together live "
            "on, two of them may come from one prefix.",
        ),
        WrongVersion(
            _beam_without("last"),
            "Prefixes are compared by their last token alone: add up the log p of all tokens.",
        ),
        WrongVersion(
            _beam_without("average"),
            "Hypotheses are compared by log p per token: this exercise has no length penalty.",
        ),
        WrongVersion(
            _beam_without("probabilities"),
            "Probabilities are added up: multiply them, or add up their logarithms.",
        ),
    ),
)

EXERCISES = (GREEDY, BEAM_SEARCH)
