"""From what people hand over to a document: files, objects beside them, objects of a program.

Everything is bounded, and every fault has its line and column. What is right is not asked here.
"""
