"""Methods that are common in papers: tests, the decision path, and its false-positive rates.

`wattwire.stats` does not import this package, because the answers do not use these methods.
"""

from wattwire.stats.paper.aligned import aligned_ranks
from wattwire.stats.paper.assumptions import (
    BoxCox,
    Outliers,
    box_cox,
    iqr_outliers,
    levene,
    shapiro_wilk,
)
from wattwire.stats.paper.kruskal import kruskal_wallis
from wattwire.stats.paper.means import anova, student_t, welch_anova, welch_t
from wattwire.stats.paper.path import BlockShare, Branch, Path, Step, decide
from wattwire.stats.paper.posthoc import (
    adjusted_bonferroni,
    adjusted_holm,
    dunn,
    games_howell,
    tukey_hsd,
)
from wattwire.stats.paper.significance import Pair, Significance

__all__ = [
    "BlockShare",
    "BoxCox",
    "Branch",
    "Outliers",
    "Pair",
    "Path",
    "Step",
    "Significance",
    "adjusted_bonferroni",
    "adjusted_holm",
    "aligned_ranks",
    "anova",
    "box_cox",
    "decide",
    "dunn",
    "games_howell",
    "iqr_outliers",
    "kruskal_wallis",
    "levene",
    "shapiro_wilk",
    "student_t",
    "tukey_hsd",
    "welch_anova",
    "welch_t",
]
