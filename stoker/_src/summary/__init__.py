"""Writers of event files: `tf.summary.FileWriter` of 1.x, `tf.summary` of 2.x, `tf.contrib.summary`."""
