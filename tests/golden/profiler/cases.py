"""A small training graph and the options it is profiled with, for TensorFlow and for the tests."""


def build(tf):
    x = tf.placeholder(tf.float32, [32, 20], name="x")
    with tf.variable_scope("layer1"):
        w = tf.get_variable("w", [20, 10], initializer=tf.zeros_initializer())
        b = tf.get_variable("b", [10], initializer=tf.zeros_initializer())
        y = tf.nn.relu(tf.nn.bias_add(tf.matmul(x, w), b))
    with tf.variable_scope("layer2"):
        y = hidden(tf, y)
    k = tf.get_variable("k", [3, 3, 2, 4], initializer=tf.zeros_initializer())
    c = tf.nn.conv2d(tf.zeros([1, 8, 8, 2]), k, [1, 1, 1, 1], "SAME", name="conv")
    loss = tf.reduce_sum(y, name="loss") + tf.reduce_sum(c)
    gradient = tf.gradients(loss, [w, k])
    step = tf.get_variable("step", [], initializer=tf.zeros_initializer(), trainable=False)
    return x, loss, gradient, step


def hidden(tf, y):
    w = tf.get_variable("w", [10, 5], initializer=tf.ones_initializer())
    return tf.matmul(y, w, name="product")


def options(tf):
    """{title: (command, options)} of reports that depend on the graph alone."""
    builder = tf.profiler.ProfileOptionBuilder
    parameters, operations = builder.trainable_variables_parameter, builder.float_operation
    forward = {"show_name_regexes": ["(layer|k|conv|loss|step|Sum$).*"]}
    found = {
        "parameters by scope": ("scope", builder(parameters())),
        "parameters by inputs": ("graph", builder(parameters())),
        "parameters by type": ("op", builder(parameters())),
        "operations by scope": ("scope", builder(operations())),
        "operations by type": ("op", builder(operations()).select(["float_ops", "params", "occurrence"])),
        "operations below the loss": ("graph", builder(operations()).with_node_names(start_name_regexes=[".*loss.*"])),
        "two levels": (
            "scope",
            builder().with_max_depth(2).select(["params", "float_ops"]).order_by("params").with_node_names(**forward),
        ),
        "a part, and all in the totals": (
            "scope",
            builder(parameters()).account_displayed_op_only(False).with_node_names(show_name_regexes=["layer1.*"]),
        ),
        "hidden and trimmed": (
            "scope",
            builder(parameters()).with_node_names(hide_name_regexes=["layer1.*"], trim_name_regexes=["layer2.*"]),
        ),
        "hidden and trimmed, all in the totals": (
            "scope",
            builder(parameters())
            .account_displayed_op_only(False)
            .with_node_names(hide_name_regexes=["layer1.*"], trim_name_regexes=["layer2.*"]),
        ),
        "at least sixty parameters": ("scope", builder(parameters()).with_min_parameters(60)),
        "all variables": ("scope", builder(parameters()).with_accounted_types(["VariableV2"])),
        "one scope": (
            "scope",
            builder().with_node_names(start_name_regexes=["layer1.*"]).select(["params", "float_ops"]),
        ),
        "types that occur often": ("op", builder(parameters()).with_min_occurrence(3).order_by("occurrence")),
    }
    return {title: (cmd, chosen.build()) for title, (cmd, chosen) in found.items()}


def report(tf, path, cmd, chosen, op_log=None):
    """The report as a file has it, from its numbers on."""
    chosen = dict(chosen, output="file:outfile=" + path)
    root = tf.profiler.profile(tf.get_default_graph(), cmd=cmd, options=chosen, op_log=op_log)
    with open(path) as file:
        text = file.read()
    return text[text.index("Profile:") :].rstrip().splitlines(), root
