"""Statistics of one run's series: percentiles, dependence, modes, ticks, warm-up, alignment."""
