"""Planning experiments: sample sizes, power, repetitions and paired tests."""
