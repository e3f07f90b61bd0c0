"""The torture: all is killed at random while jobs flow, and a ledger proves that none is lost.

ledger.py      what each process notes, outside the queue
jobs.py        payloads with a checksum, and the queue's options
producer.py, worker.py, mender.py     the processes
chaos.py       what is done to them, to the server and to the network
checker.py     reads the ledger: what must hold, and what is explained
run.py         the whole: `make torture MINUTES=20`
"""
