"""Flows on Spark: pages through Structured Streaming. pyspark is imported here and nowhere else."""
