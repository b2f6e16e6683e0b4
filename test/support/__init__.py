"""What tests share: machines, cases, independent engines, and processes to test against."""
