"""What is said to and heard from a real Apache Kafka."""
