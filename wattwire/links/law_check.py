"""Check links in logical time: plan all tests, run them, report the failures."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from wattwire.links.certainties import check_certainties
from wattwire.links.findings import Finding
from wattwire.links.loads import Runner, apply_between_ends
from wattwire.links.statistics import (
    FAMILYWISE,
    Effort,
    Part,
    check_part,
    frames_needed,
    parts,
    tests_per_seed,
)
from wattwire.model.links.profile import Link


@dataclass(frozen=True)
class LawCheck:
    """All tests of some links, with the error probability divided by Bonferroni."""

    links: Sequence[Link]
    effort: Effort = Effort()
    run: Runner = apply_between_ends

    @property
    def test_count(self) -> int:
        """The number of statistical tests."""
        all_parts = [part for link in self.links for part in parts(link)]
        return max(1, self.effort.seeds * sum(map(tests_per_seed, all_parts)))

    @property
    def p_min(self) -> float:
        """The level of each test."""
        return FAMILYWISE / self.test_count

    @property
    def z(self) -> float:
        """The quantile of the normal distribution for the interval of each test."""
        from scipy.stats import norm  # noqa: PLC0415 - imported in a second, for few commands

        return float(norm.ppf(1 - self.p_min / 2))

    def frames(self, link: Link) -> int:
        """Return the number of frames of a link's statistical tests."""
        return self.effort.seeds * sum(self._frames(part) for part in parts(link))

    def _frames(self, part: Part) -> int:
        return frames_needed(part, self.z, self.effort)

    def findings(self, link: Link) -> Iterator[Finding]:
        """Test one link and yield the findings as they come."""
        yield from check_certainties(link, self.run)
        for part in parts(link):
            for seed in range(1, self.effort.seeds + 1):
                count = self._frames(part)
                yield from check_part(part, seed, self.z, self.p_min, count, self.run)
