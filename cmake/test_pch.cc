// Exists so that the test programs' precompiled header has a library to belong to.
