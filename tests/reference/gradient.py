"""Derivatives by central differences."""


def central_difference(function, array, index, step=1e-5):
    """d function() / d array[index], where ``function`` reads ``array``; error of order step^2."""
    value = array[index]
    array[index] = value + step
    above = function()
    array[index] = value - step
    below = function()
    array[index] = value
    return (above - below) / (2 * step)


def random_entries(array, count, rng):
    """``count`` random indices of ``array``, as tuples (repetition possible)."""
    return [tuple(int(rng.integers(size)) for size in array.shape) for _ in range(count)]
