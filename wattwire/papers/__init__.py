"""Methods that are common in papers: tests, the decision path, and its false-positive rates.

`wattwire.stats` does not import this package, because the answers do not use these methods. They
treat runs as unpaired and ignore the blocks of the design.
"""

from wattwire.papers.aligned import aligned_ranks
from wattwire.papers.assumptions import (
    BoxCox,
    Outliers,
    box_cox,
    iqr_outliers,
    levene,
    shapiro_wilk,
)
from wattwire.papers.kruskal import kruskal_wallis
from wattwire.papers.means import anova, student_t, welch_anova, welch_t
from wattwire.papers.path import BlockShare, Branch, Path, Step, decide
from wattwire.papers.posthoc import (
    adjusted_bonferroni,
    adjusted_holm,
    dunn,
    games_howell,
    tukey_hsd,
)
from wattwire.papers.significance import Pair, Significance

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
