"""How the protocol core is compiled."""

# What each message goes through: what is called once in a step is to be one function with it.
EACH_MESSAGE = select({
    "//impl/sdp:optimised": ["-O3"],
    "//conditions:default": [],
})
