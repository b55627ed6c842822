"""What restricts a mechanism, as rows of Gauss's problem: one file a kind of restriction."""
