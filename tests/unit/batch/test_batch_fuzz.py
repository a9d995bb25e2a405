"""A short run of the fuzzer; `make fuzz` runs a million inputs."""

from __future__ import annotations

from tests.fuzz.batch import PEAK_BYTES_MAX, Outcome, main, run


def test_ten_thousand_hostile_inputs_are_refused_or_harmless() -> None:
    seen: list[Outcome] = []
    outcome = run(inputs=10_000, seed=2, progress=seen.append)
    assert outcome.failures == []
    assert outcome.inputs == outcome.accepted + outcome.refused.total() == 10_000
    # A fuzzer that never gets past the first gate, or never fails, shows nothing.
    assert outcome.accepted > 500
    assert len(outcome.refused) > 30
    assert outcome.peak_bytes < PEAK_BYTES_MAX


def test_one_input_can_be_run_again_alone(capsys: object) -> None:
    assert main(["--seed", "2", "--first", "4711", "--inputs", "1"]) == 0
