"""What algorithms run on: problems, suites, configuration spaces."""
