"""Fair, sticky shares of partitions."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from stream.log.shares import fair_counts, fair_part, next_step

members = st.sets(st.sampled_from(["a", "b", "c", "d", "e"]), min_size=1)


def run_by_news(live: list[str], owners: dict[int, str], partitions: int, first: int) -> None:
    """Let a member step only if another has moved since its last look, as the embedded log does."""
    news = set(live)
    for turn in range(first, first + 100):
        member = live[turn % len(live)]
        if member in news:
            news.discard(member)
            step = next_step(member, live, owners, partitions)
            for partition in step.give_up:
                del owners[partition]
            owners.update(dict.fromkeys(step.take, member))
            if step != ([], []):
                news.update(other for other in live if other != member)
    assert not news


def run(live: list[str], owners: dict[int, str], partitions: int, order: list[int]) -> int:
    """Step the members in an order until none moves; returns the number of moved partitions."""
    moved = 0
    for turn in range(100):
        member = live[order[turn % len(order)] % len(live)] if turn < 20 else live[turn % len(live)]
        step = next_step(member, live, owners, partitions)
        for partition in step.give_up:
            assert owners.pop(partition) == member
        for partition in step.take:
            assert partition not in owners
            owners[partition] = member
            moved += 1
    assert all(next_step(member, live, owners, partitions) == ([], []) for member in live)
    return moved


@given(members, st.dictionaries(st.integers(0, 9), st.sampled_from(["a", "b", "c", "d", "e"])), st.integers(0, 4))
def test_nobody_waits_for_a_step_that_never_comes(live: set[str], owned: dict[int, str], first: int) -> None:
    """From any ownership, members that step only on changes end in a fair cover."""
    owners = {partition: owner for partition, owner in owned.items() if owner in live}
    run_by_news(sorted(live), owners, 10, first)
    counts = [sum(owner == member for owner in owners.values()) for member in live]
    assert sorted(owners) == list(range(10))
    assert max(counts) - min(counts) <= 1


@given(members, members, st.integers(0, 24), st.lists(st.integers(0, 9), min_size=1, max_size=9))
def test_steps_end_in_a_fair_cover(before: set[str], after: set[str], partitions: int, order: list[int]) -> None:
    """After any joins, leaves and steps, all partitions are owned, shares differ by one at most, and few move."""
    owners: dict[int, str] = {}
    run(sorted(before), owners, partitions, order)
    kept = {partition: owner for partition, owner in owners.items() if owner in after}
    left = dict(kept)
    run(sorted(after), left, partitions, order)
    counts = [sum(owner == member for owner in left.values()) for member in after]
    assert sorted(left) == list(range(partitions))
    assert max(counts) - min(counts) <= 1
    fair = fair_counts(after, kept, partitions)
    stay = sum(min(fair[m], sum(owner == m for owner in kept.values())) for m in after)
    assert sum(left[p] == owner for p, owner in kept.items()) >= stay


def test_the_share_of_a_shrunken_topic_is_given_up() -> None:
    """Partitions beyond the topics' partition count have no owner."""
    assert next_step("a", ["a"], {0: "a", 5: "a"}, 2) == ([5], [1])


def test_a_part_of_a_budget_is_never_nothing() -> None:
    """Consecutive parts of 10 in 4 turns sum to 10; an empty budget still allows one."""
    left, parts = 10, []
    for turns in (4, 3, 2, 1):
        parts.append(fair_part(left, turns))
        left -= parts[-1]
    assert (parts, left) == ([3, 3, 2, 2], 0)
    assert fair_part(0, 3) == 1
