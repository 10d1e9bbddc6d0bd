"""Transforms between the documents, counts, tokenizers and token ids of any Beam pipeline.

Each is thin: keyword-only, typed, over plain functions that are tested without Beam. Nothing is
read, written or listed before the pipeline runs. Take them from `pipelines`.
"""
