"""Running algorithms: requests, local processes, workers and the dispatcher that feeds them."""
