"""An alarm that rings for a group which was let go since makes nobody step."""

from __future__ import annotations

from tests.unit.lending.test_groups_that_cannot_be_read import Leader

from angarium.testing.sim.clock import SECOND
from angarium.testing.sim.script import GROUP

STEPS_MAX = 20_000
"""Events of a second of the whole simulated cluster: a few hundred; of one that spins: no end."""


def test_a_partition_that_is_led_elsewhere_does_not_step_for_ever() -> None:
    # Seed 60542: the group was let go because nobody needed it, with an alarm still set; when that
    # rang, another node led the partition.
    leader = Leader()
    member = leader.attach("a")
    leader.wait(lambda: member.loans)
    host = leader.lending.host
    led = host.led[GROUP]
    group = led.groups["g"]
    leader.node.do(lambda: leader.seats["a"].detach(lost=False))
    leader.wait(lambda: not led.groups)
    leader.node.do(led.close)
    leader.node.do(led.stir, group)

    steps = 0

    def counted() -> bool:
        nonlocal steps
        steps += 1
        return steps > STEPS_MAX

    scheduler = leader.world.scheduler
    scheduler.run_until(scheduler.now + SECOND, stop=counted)
    assert steps <= STEPS_MAX
