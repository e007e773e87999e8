#!/usr/bin/env bash
# Compares base and head in one campaign and sets the action's outputs.
# All inputs are environment variables, so the shell never executes an input as a command.
set -euo pipefail

arguments=("$STUDY" --variant "base=${BASE:-}" --variant "head=${HEAD:-}")
arguments+=(--campaign "$CAMPAIGN" --markdown "$CAMPAIGN.md" --junit "$CAMPAIGN.xml")
arguments+=(--yes --plain)
[ -z "${CANNOT_TELL:-}" ] || arguments+=(--cannot-tell "$CANNOT_TELL")
[ -z "${MARGIN:-}" ] || arguments+=(--margin "$MARGIN")
[ -z "${PRESET:-}" ] || arguments+=(--preset "$PRESET")
[ -z "${ONLY:-}" ] || arguments+=(--only "$ONLY")
[ "${CONFIRM:-true}" != true ] || arguments+=(--confirm)
while IFS= read -r line; do
    [ -z "$line" ] || arguments+=(--response "$line")
done <<<"${RESPONSES:-}"
while IFS= read -r line; do
    [ -z "$line" ] || arguments+=(--set "$line")
done <<<"${CHANGES:-}"

code=0
wattwire run "${arguments[@]}" || code=$?
if [ -f "$CAMPAIGN.md" ] && [ -n "${GITHUB_STEP_SUMMARY:-}" ]; then
    cat "$CAMPAIGN.md" >>"$GITHUB_STEP_SUMMARY"
fi
if [ -n "${GITHUB_OUTPUT:-}" ]; then
    {
        echo "exit-code=$code"
        echo "report=$CAMPAIGN/report/index.html"
        echo "markdown=$CAMPAIGN.md"
        echo "junit=$CAMPAIGN.xml"
    } >>"$GITHUB_OUTPUT"
fi
exit "$code"
