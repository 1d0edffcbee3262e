"""OAI-PMH 2.0: a request becomes a value, answering it is a function, the answer is a stream."""
