"""`python -m wattwire`."""

from wattwire.cli.main import main

raise SystemExit(main())
