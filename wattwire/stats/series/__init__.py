"""Statistics of one run's series: percentiles, dependence, modes, ticks and warm-up."""
