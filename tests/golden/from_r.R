# Makes from_r.csv: what R gives for the samples in samples.csv. Beside the project only.
#   Rscript tests/golden/from_r.R tests/golden/samples.csv tests/golden/from_r.csv
# Base R where it has the test; coin, exactRankTests, MASS and rstatix as further witnesses; what
# none of them has is written out here from its definition, by enumeration where that is possible.
suppressMessages({library(coin); library(exactRankTests); library(MASS)})
options(warn = -1)
arguments <- commandArgs(trailingOnly = TRUE)
samples <- read.csv(arguments[1], stringsAsFactors = FALSE)
rows <- list()
put <- function(sample, quantity, value) {
  text <- formatC(as.numeric(value), digits = 17, format = "g")
  rows[[length(rows) + 1]] <<- data.frame(sample = sample, quantity = quantity, value = text)
}
versions <- c(coin = "coin", exactRankTests = "exactRankTests", MASS = "MASS", rstatix = "rstatix")
about <- paste(c(R.version.string, sapply(versions, function(p)
  paste(p, as.character(packageVersion(p))))), collapse = "; ")
groups <- function(name) {
  part <- samples[samples$sample == name, ]
  split(part$value, part$group)
}
long <- function(name) {
  part <- samples[samples$sample == name, ]
  part$group <- factor(part$group)
  part$block <- factor(part$block)
  part$other <- factor(part$other)
  part
}

# Normality, transformation, outliers, variances
for (name in c("two", "three", "small", "many")) {
  for (g in names(groups(name))) {
    found <- shapiro.test(groups(name)[[g]])
    put(name, paste0("shapiro.W.", g), found$statistic)
    put(name, paste0("shapiro.p.", g), found$p.value)
  }
}
for (name in c("three", "many")) {
  part <- long(name)
  best <- optimize(function(power) {
    z <- part$value / exp(mean(log(part$value)))
    moved <- if (abs(power) < 1e-12) log(z) else (z^power - 1) / power
    -nrow(part) / 2 * log(sum(resid(lm(moved ~ part$group))^2))
  }, c(-5, 5), maximum = TRUE, tol = 1e-10)$maximum
  grid <- seq(-5, 5, 0.001)
  curve <- boxcox(value ~ group, data = part, lambda = grid, plotit = FALSE)
  stopifnot(abs(curve$x[which.max(curve$y)] - best) < 0.002)
  put(name, "boxcox.power", best)
}
values <- groups("outliers")$a
fences <- quantile(values, c(.25, .75), type = 7) + c(-1.5, 1.5) * IQR(values, type = 7)
put("outliers", "iqr.low", fences[1]); put("outliers", "iqr.high", fences[2])
put("outliers", "iqr.removed", sum(values < fences[1] | values > fences[2]))
for (name in c("two", "three", "many")) for (centre in c("mean", "median")) {
  part <- long(name)
  part$distance <- abs(part$value - ave(part$value, part$group, FUN = get(centre)))
  table <- anova(lm(distance ~ group, data = part))
  put(name, paste0("levene.F.", centre), table[1, "F value"])
  put(name, paste0("levene.p.", centre), table[1, "Pr(>F)"])
}

# Means
for (pooled in c(TRUE, FALSE)) {
  found <- t.test(groups("two")$a, groups("two")$b, var.equal = pooled)
  way <- if (pooled) "student" else "welch"
  put("two", paste0(way, ".t"), found$statistic)
  put("two", paste0(way, ".p"), found$p.value)
  put("two", paste0(way, ".df"), found$parameter)
  put("two", paste0(way, ".low"), found$conf.int[1])
  put("two", paste0(way, ".high"), found$conf.int[2])
}
for (name in c("three", "many")) for (equal in c(TRUE, FALSE)) {
  found <- oneway.test(value ~ group, data = long(name), var.equal = equal)
  way <- if (equal) "anova" else "welch_anova"
  put(name, paste0(way, ".F"), found$statistic)
  put(name, paste0(way, ".p"), found$p.value)
  put(name, paste0(way, ".df"), found$parameter[2])
}
for (name in c("three", "many")) {
  part <- long(name)
  found <- TukeyHSD(aov(value ~ group, data = part))$group
  for (pair in rownames(found)) {
    put(name, paste0("tukey.difference.", pair), found[pair, "diff"])
    put(name, paste0("tukey.low.", pair), found[pair, "lwr"])
    put(name, paste0("tukey.high.", pair), found[pair, "upr"])
    put(name, paste0("tukey.p.", pair), found[pair, "p adj"])
  }
  g <- groups(name)
  for (i in seq_along(g)) for (j in seq_along(g)) if (i < j) {
    pair <- paste0(names(g)[j], "-", names(g)[i])
    a <- var(g[[i]]) / length(g[[i]]); b <- var(g[[j]]) / length(g[[j]])
    df <- (a + b)^2 / (a^2 / (length(g[[i]]) - 1) + b^2 / (length(g[[j]]) - 1))
    error <- sqrt((a + b) / 2)
    q <- abs(mean(g[[j]]) - mean(g[[i]])) / error
    put(name, paste0("games.p.", pair), ptukey(q, length(g), df, lower.tail = FALSE))
    half <- qtukey(.95, length(g), df) * error
    put(name, paste0("games.low.", pair), mean(g[[j]]) - mean(g[[i]]) - half)
  }
}

# Ranks, unpaired
for (name in c("two", "tied", "three", "small", "smalltied", "many")) {
  found <- kruskal.test(value ~ group, data = long(name))
  put(name, "kruskal.H", found$statistic)
  put(name, "kruskal.p.chi2", found$p.value)
}
# Exact p of two groups is the rank sum's: coin by its shift algorithm, ties as they are.
for (name in c("two", "tied")) {
  found <- wilcox_test(value ~ group, data = long(name), distribution = "exact")
  put(name, "kruskal.p.exact", pvalue(found))
  witness <- wilcox.exact(value ~ group, data = long(name), exact = TRUE)$p.value
  stopifnot(abs(witness - as.numeric(pvalue(found))) < 1e-12)
}
# Exact p of three groups of three: all 1,680 arrangements.
for (name in c("small", "smalltied")) {
  ranks <- rank(long(name)$value); sizes <- c(3, 3, 3)
  spread <- function(a, b) {
    left <- setdiff(1:9, c(a, b))
    sum(ranks[a])^2 / 3 + sum(ranks[b])^2 / 3 + sum(ranks[left])^2 / 3
  }
  observed <- spread(1:3, 4:6)
  all <- unlist(lapply(combn(9, 3, simplify = FALSE), function(a)
    lapply(combn(setdiff(1:9, a), 3, simplify = FALSE), function(b) spread(a, b))))
  stopifnot(length(all) == 1680)
  put(name, "kruskal.p.exact", mean(all >= observed - 1e-9))
}
for (name in c("three", "many", "smalltied")) {
  g <- groups(name); n <- sapply(g, length); total <- sum(n)
  ranks <- split(rank(unlist(g)), rep(names(g), n))
  ties <- table(unlist(ranks))
  variance <- total * (total + 1) / 12 - sum(ties^3 - ties) / (12 * (total - 1))
  raw <- c()
  for (i in seq_along(g)) for (j in seq_along(g)) if (i < j) {
    pair <- paste0(names(g)[i], "-", names(g)[j])
    z <- (mean(ranks[[i]]) - mean(ranks[[j]])) / sqrt(variance * (1 / n[i] + 1 / n[j]))
    put(name, paste0("dunn.z.", pair), z)
    raw[pair] <- 2 * pnorm(-abs(z))
  }
  for (way in c("none", "bonferroni", "holm")) {
    adjusted <- p.adjust(raw, way)
    for (pair in names(raw)) put(name, paste0("dunn.", way, ".", pair), adjusted[pair])
  }
  witness <- rstatix::dunn_test(long(name), value ~ group, p.adjust.method = "holm")
  stopifnot(max(abs(witness$p.adj - p.adjust(raw, "holm"))) < 1e-9)
}

# Aligned ranks: each effect's own alignment, type III on the ranks, balanced.
part <- long("factorial")
cell <- ave(part$value, part$group, part$other)
of_group <- ave(part$value, part$group); of_other <- ave(part$value, part$other)
grand <- mean(part$value)
effects <- list(group = of_group - grand, other = of_other - grand,
                "group:other" = cell - of_group - of_other + grand)
for (effect in names(effects)) {
  part$ranks <- rank(round(part$value - cell + effects[[effect]], 10))
  model <- lm(ranks ~ group * other, data = part,
              contrasts = list(group = contr.sum, other = contr.sum))
  table <- drop1(model, . ~ ., test = "F")
  put("factorial", paste0("aligned.F.", effect), table[effect, "F value"])
  put("factorial", paste0("aligned.p.", effect), table[effect, "Pr(>F)"])
}

# Associations
for (name in c("scatter", "scatter8", "scattertied")) {
  x <- groups(name)$x; y <- groups(name)$y
  found <- cor.test(x, y)
  put(name, "pearson.r", found$estimate); put(name, "pearson.p", found$p.value)
  put(name, "pearson.low", found$conf.int[1]); put(name, "pearson.high", found$conf.int[2])
  exact <- name == "scatter8"
  found <- cor.test(x, y, method = "spearman", exact = exact)
  put(name, "spearman.rho", found$estimate); put(name, "spearman.p", found$p.value)
  found <- cor.test(x, y, method = "kendall", exact = name != "scattertied")
  put(name, "kendall.tau", found$estimate); put(name, "kendall.p", found$p.value)
}
limits <- function(r, variance) tanh(atanh(r) + c(-1, 1) * qnorm(.975) * sqrt(variance))
for (name in c("scatter", "scattertied")) {
  x <- groups(name)$x; y <- groups(name)$y; n <- length(x)
  rho <- cor(x, y, method = "spearman"); tau <- cor(x, y, method = "kendall")
  put(name, "spearman.low", limits(rho, (1 + rho^2 / 2) / (n - 3))[1])
  put(name, "kendall.low", limits(tau, .437 / (n - 4))[1])
}
model <- lm(log(groups("scatter")$y) ~ log(groups("scatter")$x))
put("scatter", "exponent", coef(model)[2])
put("scatter", "exponent.low", confint(model)[2, 1])
put("scatter", "exponent.high", confint(model)[2, 2])

# The default path: Hodges-Lehmann, signed ranks, Cliff's delta, blocks
logs <- lapply(groups("two"), log)
found <- wilcox.test(logs$a, logs$b, conf.int = TRUE, exact = TRUE)
put("two", "hl.ratio", exp(median(outer(logs$a, logs$b, "-"))))
put("two", "hl.low", exp(found$conf.int[1])); put("two", "hl.high", exp(found$conf.int[2]))
cut <- qwilcox(.025, 8, 7)
put("two", "hl.level", 1 - 2 * pwilcox(cut - 1, 8, 7))
shift <- wilcox.test(groups("two")$a, groups("two")$b, conf.int = TRUE, exact = TRUE)
put("two", "hl.shift.low", shift$conf.int[1]); put("two", "hl.shift.high", shift$conf.int[2])
paired <- groups("paired")
found <- wilcox.test(log(paired$b), log(paired$a), paired = TRUE, conf.int = TRUE, exact = TRUE)
put("paired", "signed.ratio", exp(found$estimate))
put("paired", "signed.low", exp(found$conf.int[1]))
put("paired", "signed.high", exp(found$conf.int[2]))
put("paired", "signed.level", 1 - 2 * psignrank(qsignrank(.025, 9) - 1, 9))
put("paired", "t.ratio", exp(mean(log(paired$b / paired$a))))
found <- t.test(log(paired$b), log(paired$a), paired = TRUE)
put("paired", "t.low", exp(found$conf.int[1])); put("paired", "t.high", exp(found$conf.int[2]))
for (name in c("two", "tied")) {
  g <- groups(name); a <- g$a; b <- g$b; n <- length(a); m <- length(b)
  share <- mean(outer(a, b, ">")) + mean(outer(a, b, "==")) / 2
  more <- (n + m) / 2 - 1
  lack <- function(at) (share - at)^2 - qnorm(.975)^2 *
    at * (1 - at) * (1 + more * (1 - at) / (2 - at) + more * at / (1 + at)) / (n * m)
  put(name, "cliff.delta", 2 * share - 1)
  put(name, "cliff.low", 2 * uniroot(lack, c(1e-9, share), tol = 1e-14)$root - 1)
  put(name, "cliff.high", 2 * uniroot(lack, c(share, 1 - 1e-9), tol = 1e-14)$root - 1)
}
part <- long("blocks")
table <- with(part, tapply(value, list(block, group), identity))
put("blocks", "friedman.chi2", friedman.test(table)$statistic)
put("blocks", "quade.F", quade.test(table)$statistic)
orders <- as.matrix(expand.grid(1:3, 1:3, 1:3))
orders <- orders[apply(orders, 1, function(o) length(unique(o)) == 3), ]
choices <- as.matrix(expand.grid(rep(list(1:6), nrow(table))))  # all 6^5 arrangements
scores <- list(
  friedman = t(apply(table, 1, rank)) - 2,
  quade = (t(apply(table, 1, rank)) - 2) * rank(apply(table, 1, function(r) diff(range(r))))
)
for (name in names(scores)) {
  s <- scores[[name]]
  sums <- matrix(0, nrow(choices), 3)
  for (block in seq_len(nrow(s))) {
    dealt <- matrix(s[block, ][t(orders)], ncol = 3, byrow = TRUE)
    sums <- sums + dealt[choices[, block], ]
  }
  put("blocks", paste0(name, ".p.exact"), mean(rowSums(sums^2) >= sum(colSums(s)^2) - 1e-9))
}
model <- lm(log(value) ~ block + group, data = part)
for (level in c("b", "c")) {
  put("blocks", paste0("ratio.", level), exp(coef(model)[paste0("group", level)]))
  put("blocks", paste0("ratio.low.", level), exp(confint(model)[paste0("group", level), 1]))
  put("blocks", paste0("ratio.high.", level), exp(confint(model)[paste0("group", level), 2]))
}
effect <- anova(model)["group", ]
statistic <- effect[["F value"]]; between <- effect[["Df"]]; within <- model$df.residual
put("blocks", "effect.F", statistic); put("blocks", "effect.p", effect[["Pr(>F)"]])
put("blocks", "omega2", between * (statistic - 1) / (between * (statistic - 1) + nrow(part)))
ends <- sapply(c(.975, .025), function(share) {
  lack <- function(ncp) pf(statistic, between, within, ncp) - share
  if (lack(0) <= 0) 0 else uniroot(lack, c(0, 1000), tol = 1e-12)$root
})
put("blocks", "omega2.low", ends[1] / (ends[1] + nrow(part)))
put("blocks", "omega2.high", ends[2] / (ends[2] + nrow(part)))

lines <- do.call(rbind, rows)
writeLines(c(paste("#", about), "sample,quantity,value",
             paste(lines$sample, lines$quantity, lines$value, sep = ",")), arguments[2])
