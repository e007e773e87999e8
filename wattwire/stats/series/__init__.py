"""Statistics of one run's series: percentiles, dependence, modes, warm-up."""
