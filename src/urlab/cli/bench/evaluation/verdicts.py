"""The bars of policy evaluation, and what passes them."""

from collections.abc import Sequence

from urlab.cli.bench.evaluation.results import PairResult, StepsResult, WholeResult
from urlab.cli.bench.results import Verdict

MIN_PAIR_RATIO = 1.7
MAX_WHOLE_S = 600.0


def judge_eval(steps: Sequence[StepsResult], whole: WholeResult) -> list[Verdict]:
    """Every bar. Not judged: cameras, two workers where there were no two cores, an evaluation that is not whole."""
    pairs = [_pair(one, one.judged) for one in steps if one.judged is not None]
    return [*pairs, _same_state(steps), *([_whole(whole)] if whole.is_judged else [])]


def _pair(steps: StepsResult, judged: PairResult) -> Verdict:
    rounds = f"{steps.judged_rounds} of {len(steps.round_p50_us['http'])} rounds; all {steps.workers.ratio:.2f}"
    return Verdict(
        name=f"{steps.scene}: two workers in one request / one, control steps per second",
        bar=f">= {MIN_PAIR_RATIO:g}",
        value=judged.ratio,
        shown=f"{judged.ratio:.2f} ({2 * judged.two.rate_hz:.0f} / {judged.one.rate_hz:.0f}; {rounds})",
        passed=judged.ratio >= MIN_PAIR_RATIO,
    )


def _same_state(steps: Sequence[StepsResult]) -> Verdict:
    apart = sum(not one.same_state for one in steps)
    return Verdict(
        name="cases in which a worker's state differs from the bare physics'",
        bar="0",
        value=apart,
        shown=f"{apart} of {len(steps)}",
        passed=apart == 0,
    )


def _whole(whole: WholeResult) -> Verdict:
    return Verdict(
        name=f"{len(whole.tasks)} tasks with oracles, {whole.episodes} episodes, {whole.workers} workers, no cameras",
        bar=f"< {MAX_WHOLE_S:g} s",
        value=whole.took_s,
        shown=f"{whole.took_s:.0f} s" if whole.is_complete else f"incomplete: {whole.problem}",
        passed=whole.is_complete and whole.took_s < MAX_WHOLE_S,
    )
