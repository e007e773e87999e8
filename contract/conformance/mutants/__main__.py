"""`python -m contract.conformance.mutants [WORD…]`: print the mutants and the survivors."""

from __future__ import annotations

import sys

from .runner import Outcome, mutants, try_mutants


def _print_row(outcome: Outcome) -> None:
    """Print one row of the table; for a survivor, print the details below it."""
    caught = ", ".join(outcome.clauses) or "nothing"
    state = "caught" if outcome.caught else "SURVIVED"
    expected = outcome.mutant.clause
    print(f"{state:<9}{outcome.mutant.identity:<62}{expected:<6}{caught}", flush=True)
    if not outcome.caught:
        for text in (outcome.error, *outcome.details):
            if text:
                print(f"         {text}", flush=True)


def main(words: list[str]) -> int:
    """Try the mutants whose identity contains any of `words` (all if there are no words).

    Return the exit code: 0 if all are caught, 1 if some survive, 2 for an invalid table or word.
    """
    try:
        all_mutants = mutants()
    except LookupError as error:
        print(error, file=sys.stderr)
        return 2
    chosen = [m for m in all_mutants if not words or any(word in m.identity for word in words)]
    if not chosen:
        print(f"no mutant's name contains {', '.join(words)}", file=sys.stderr)
        return 2
    print(f"{'':<9}{'mutant':<62}{'clause':<6}caught by")
    outcomes = try_mutants(chosen, _print_row)
    survivors = [outcome.mutant.identity for outcome in outcomes if not outcome.caught]
    print(f"{len(outcomes) - len(survivors)} of {len(outcomes)} caught")
    print("survivors: " + ("; ".join(survivors) or "none"))
    return 1 if survivors else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
