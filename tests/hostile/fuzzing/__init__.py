"""The parts of tests/hostile/fuzz.py.

``kinds`` says what a reader, an answer and a declared change are; ``damage`` and ``containers`` damage files;
``rewriting`` holds what declared changes share; ``readers`` has the readers, their real files and their declared
changes; ``judging`` decides about one input, ``working`` runs many, ``guided`` lets atheris choose them.
"""
