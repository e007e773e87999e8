"""Predictions of a pilot for a campaign, which `wattwire plan` prints. No report has them."""
