/* The rules of ops/training/rules.py for whole variables and for rows, in the type REAL; updates.c includes this file once for each type. NAME(x)
 * is the function's name for that type, ROOT and MAGNITUDE are its square root and absolute value. A rule changes `count` elements of the variable
 * and its slots; the gradient is the last array. Every operation is rounded. */

/* m += (g - m) * (1 - beta1);  v += (g^2 - v) * (1 - beta2);  var -= rate * m / (sqrt(v) + epsilon)
 * With Nesterov momentum, the last m is (1 - beta1) * g + beta1 * m. */
VECTORISED static void NAME(adam)(void *const *arrays, int64_t count, const double *numbers) {
    REAL *restrict var = arrays[0], *restrict m = arrays[1], *restrict v = arrays[2];
    const REAL *restrict grad = arrays[3];
    const REAL rate = (REAL)numbers[0], beta1 = (REAL)numbers[1], rest1 = (REAL)numbers[2], rest2 = (REAL)numbers[3], epsilon = (REAL)numbers[4];
    const int nesterov = numbers[5] != 0.0;
    for (int64_t i = 0; i < count; i++) {
        REAL g = grad[i];
        REAL first = m[i] + (g - m[i]) * rest1, second = v[i] + (g * g - v[i]) * rest2;
        REAL ahead = nesterov ? g * rest1 + first * beta1 : first;
        m[i] = first;
        v[i] = second;
        var[i] -= ahead * rate / (ROOT(second) + epsilon);
    }
}

/* ms = rho * ms + (1 - rho) * g^2;  mom = momentum * mom + lr * g / sqrt(ms + epsilon);  var -= mom */
VECTORISED static void NAME(rms_prop)(void *const *arrays, int64_t count, const double *numbers) {
    REAL *restrict var = arrays[0], *restrict ms = arrays[1], *restrict mom = arrays[2];
    const REAL *restrict grad = arrays[3];
    const REAL lr = (REAL)numbers[0], rho = (REAL)numbers[1], rest = (REAL)(1 - numbers[1]), momentum = (REAL)numbers[2], epsilon = (REAL)numbers[3];
    for (int64_t i = 0; i < count; i++) {
        REAL g = grad[i];
        REAL square = ms[i] * rho + rest * g * g;
        REAL change = mom[i] * momentum + lr * g / ROOT(square + epsilon);
        ms[i] = square;
        mom[i] = change;
        var[i] -= change;
    }
}

/* As rms_prop with mg += (g - mg) * (1 - rho), dividing by sqrt(ms - mg^2 + epsilon); the averages move by differences. */
VECTORISED static void NAME(centered_rms_prop)(void *const *arrays, int64_t count, const double *numbers) {
    REAL *restrict var = arrays[0], *restrict mg = arrays[1], *restrict ms = arrays[2], *restrict mom = arrays[3];
    const REAL *restrict grad = arrays[4];
    const REAL lr = (REAL)numbers[0], rest = (REAL)numbers[1], momentum = (REAL)numbers[2], epsilon = (REAL)numbers[3];
    for (int64_t i = 0; i < count; i++) {
        REAL g = grad[i];
        REAL square = ms[i] + (g * g - ms[i]) * rest, mean = mg[i] + (g - mg[i]) * rest;
        REAL change = mom[i] * momentum + lr * g / ROOT(square - mean * mean + epsilon);
        ms[i] = square;
        mg[i] = mean;
        mom[i] = change;
        var[i] -= change;
    }
}

/* accum = rho * accum + (1 - rho) * g^2;  u = sqrt(accum_update + epsilon) / sqrt(accum + epsilon) * g;
 * accum_update = rho * accum_update + (1 - rho) * u^2;  var -= lr * u */
VECTORISED static void NAME(adadelta)(void *const *arrays, int64_t count, const double *numbers) {
    REAL *restrict var = arrays[0], *restrict accum = arrays[1], *restrict accum_update = arrays[2];
    const REAL *restrict grad = arrays[3];
    const REAL lr = (REAL)numbers[0], rho = (REAL)numbers[1], rest = (REAL)(1 - numbers[1]), epsilon = (REAL)numbers[2];
    for (int64_t i = 0; i < count; i++) {
        REAL g = grad[i];
        REAL square = accum[i] * rho + rest * g * g;
        REAL change = ROOT(accum_update[i] + epsilon) / ROOT(square + epsilon) * g;
        accum[i] = square;
        accum_update[i] = accum_update[i] * rho + rest * change * change;
        var[i] -= lr * change;
    }
}

/* A NaN in the linear slot gives NaN for rows, and 0 for whole variables. */
VECTORISED static void NAME(ftrl)(void *const *arrays, int64_t count, const double *numbers) {
    REAL *restrict var = arrays[0], *restrict accum = arrays[1], *restrict linear = arrays[2];
    const REAL *restrict grad = arrays[3];
    const REAL scale = (REAL)numbers[0], divide = (REAL)numbers[1], shrinkage = (REAL)numbers[2], limit = (REAL)numbers[3], ridge = (REAL)numbers[4];
    const int rows = numbers[5] != 0.0;
    for (int64_t i = 0; i < count; i++) {
        REAL g = grad[i], before = ROOT(accum[i]), square = g * g, total = accum[i] + square, after = ROOT(total);
        REAL pull = shrinkage != 0 ? g + var[i] * shrinkage : g;
        REAL slope = (after - before) / divide * var[i];
        REAL pulled = linear[i] + (pull * scale - slope), below = after / divide + ridge;
        REAL clamped = pulled < -limit ? -limit : pulled > limit ? limit : pulled; /* keeps NaN */
        REAL bound = pulled > 0 ? limit : pulled < 0 ? -limit : 0; /* not a clamp: the limit may be negative */
        REAL value = ((rows ? clamped : bound) - pulled) / below;
        accum[i] = total;
        linear[i] = pulled;
        var[i] = rows || MAGNITUDE(pulled) > limit ? value : 0;
    }
}

/* accum += g^2;  var -= lr * g / sqrt(accum) */
VECTORISED static void NAME(adagrad)(void *const *arrays, int64_t count, const double *numbers) {
    REAL *restrict var = arrays[0], *restrict accum = arrays[1];
    const REAL *restrict grad = arrays[2];
    const REAL lr = (REAL)numbers[0];
    for (int64_t i = 0; i < count; i++) {
        REAL total = accum[i] + grad[i] * grad[i];
        accum[i] = total;
        var[i] -= lr * grad[i] / ROOT(total);
    }
}

/* accum = momentum * accum + g;  var -= lr * accum, or with Nesterov momentum lr * (g + momentum * accum) */
VECTORISED static void NAME(momentum)(void *const *arrays, int64_t count, const double *numbers) {
    REAL *restrict var = arrays[0], *restrict accum = arrays[1];
    const REAL *restrict grad = arrays[2];
    const REAL lr = (REAL)numbers[0], momentum = (REAL)numbers[1];
    const int nesterov = numbers[2] != 0.0;
    for (int64_t i = 0; i < count; i++) {
        REAL moved = accum[i] * momentum + grad[i];
        accum[i] = moved;
        var[i] -= lr * (nesterov ? grad[i] + momentum * moved : moved);
    }
}
