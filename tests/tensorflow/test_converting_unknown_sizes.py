# SPDX-License-Identifier: Apache-2.0
"""Models for inputs of any size whose graphs hold checks of those sizes: they convert, and run at each of them."""

import numpy as np
import pytest
import tensorflow as tf
from keras_compare import assert_close

import leadline
from leadline import lite


class Positions(tf.Module):
    """Embeddings with a table of positions, sliced to the length of the sequence, and a causal mask."""

    def __init__(self, rows):
        self.table = tf.Variable(tf.random.stateless_normal([rows, 4], [1, 2]))
        self.words = tf.Variable(tf.random.stateless_normal([10, 4], [3, 4]))

    @tf.function(input_signature=[tf.TensorSpec([None, None], tf.int32, name="ids")])
    def __call__(self, ids):
        batch, length = tf.unstack(tf.shape(ids))
        x = tf.gather(self.words, ids)
        x += tf.broadcast_to(tf.slice(self.table, [0, 0], [length, 4]), [batch, length, 4])
        heads = tf.transpose(tf.reshape(x, [batch, length, 2, 2]), [0, 2, 1, 3])
        scores = tf.matmul(heads, heads, transpose_b=True)
        row, column = tf.range(length)[:, tf.newaxis], tf.range(length)[tf.newaxis, :]
        scores += tf.where(row >= column, 0.0, -1e9)
        heads = tf.matmul(tf.nn.softmax(scores), heads)
        return tf.reshape(tf.transpose(heads, [0, 2, 1, 3]), [batch, length, 4])


def converted(function) -> bytes:
    """A tf.function, held by a module, so that it has a signature."""
    holder = tf.Module()
    holder.function = function
    return lite.TFLiteConverter.from_concrete_functions([function.get_concrete_function()], holder).convert()


def run(content: bytes, value: np.ndarray) -> list[np.ndarray]:
    runner = lite.Interpreter(model_content=content).get_signature_runner()
    (name,) = runner.get_input_details()
    return list(runner(**{name: value}).values())


@pytest.mark.parametrize("rows", [5, 64, 512])
def test_position_tables_leave_every_length_they_have(rows):
    module = Positions(rows)
    converter = lite.TFLiteConverter.from_concrete_functions([module.__call__.get_concrete_function()], module)
    content = converter.convert()
    for batch, length in ((1, 1), (2, 4), (3, rows), (1, min(rows, 33))):
        ids = np.random.default_rng(length).integers(0, 10, (batch, length)).astype(np.int32)
        assert_close(run(content, ids), [module(ids).numpy()])


def test_limits_and_branches_on_a_length_are_not_decided_when_converting():
    @tf.function(input_signature=[tf.TensorSpec([None, None], name="x")])
    def first_hundred(x):
        short = x[:, : tf.minimum(tf.shape(x)[1], 100)]
        return short * tf.where(tf.shape(x)[1] > 50, 2.0, 3.0)

    content = converted(first_hundred)
    for length in (1, 7, 60, 130):
        x = np.random.default_rng(length).normal(size=(2, length)).astype(np.float32)
        assert_close(run(content, x), [first_hundred(x).numpy()])


def test_pictures_need_not_be_square():
    @tf.function(input_signature=[tf.TensorSpec([None, None, None, 3], name="x")])
    def upright(x):
        height, width = tf.shape(x)[1], tf.shape(x)[2]
        return tf.cond(height < width, lambda: tf.transpose(x, [0, 2, 1, 3]), lambda: x * 2.0)

    content = converted(upright)
    for shape in ((1, 4, 4, 3), (2, 5, 3, 3), (1, 3, 6, 3)):
        x = np.random.default_rng(shape[1]).normal(size=shape).astype(np.float32)
        assert_close(run(content, x), [upright(x).numpy()])


def check(function, *arguments, content=None):
    """Converts a tf.function once and compares it with itself for each of the given tuples of arguments."""
    runner = lite.Interpreter(model_content=content or converted(function)).get_signature_runner()
    names = sorted(runner.get_input_details())
    for values in arguments:
        results = runner(**dict(zip(names, values, strict=True)))
        wanted = [part.numpy() for part in tf.nest.flatten(function(*values))]
        assert_close([results[name] for name in sorted(results)], wanted)


def numbers(*shape):
    return np.random.default_rng(sum(shape)).normal(size=shape).astype(np.float32)


def test_pictures_are_tall_or_wide():
    @tf.function(input_signature=[tf.TensorSpec([None, None, None, 3], name="x")])
    def letterbox(x):
        return tf.image.resize_with_pad(x, 32, 32)  # a power of two: quotients are exact

    check(letterbox, *((numbers(1, height, width, 3),) for height, width in ((16, 20), (33, 9), (8, 8), (9, 50))))


def test_frames_may_be_small():
    """In a frame of 8 only pictures of moderate proportions are left with a row and a column."""

    @tf.function(input_signature=[tf.TensorSpec([None, None, None, 3], name="x")])
    def framed(x):
        return tf.image.resize_with_pad(x, 8, 8)

    check(framed, *((numbers(1, height, width, 3),) for height, width in ((16, 4), (8, 32), (4, 4))))


def test_rows_of_different_lengths_are_filled():
    @tf.function(input_signature=[tf.TensorSpec([None], name="a"), tf.TensorSpec([None], tf.int32, name="b")])
    def by_lengths(a, b):
        return tf.RaggedTensor.from_row_lengths(a, b).to_tensor(-1.0)

    @tf.function(input_signature=[tf.TensorSpec([None], name="a"), tf.TensorSpec([None], tf.int32, name="b")])
    def by_rows(a, b):
        return tf.RaggedTensor.from_value_rowids(a, b, nrows=5).to_tensor(7.0, shape=[None, 3])

    rows = [np.array(row, np.int32) for row in ([3, 0, 2, 1], [2], [1, 4], [0, 0, 2, 3], [1, 1], [0, 1, 1, 1, 4])]
    check(by_lengths, *((numbers(row.sum()), row) for row in rows[:3]))
    check(by_rows, *((numbers(row.size), row) for row in rows[3:]))


def test_reductions_of_unknown_rank():
    @tf.function(input_signature=[tf.TensorSpec(None, name="x")])
    def largest(x):
        return tf.reduce_max(x, axis=-1, keepdims=True)

    check(largest, (numbers(3),), (numbers(2, 3),), (numbers(2, 3, 4),))


def test_images_are_padded_to_whole_windows():
    @tf.function(input_signature=[tf.TensorSpec([None, None, None, 2], name="x")])
    def windows(x):
        batch, height, width, _ = tf.unstack(tf.shape(x))
        down, right = (4 - height % 4) % 4, (4 - width % 4) % 4
        y = tf.pad(x, [[0, 0], [0, down], [0, right], [0, 0]])
        rows, columns = (height + down) // 4, (width + right) // 4
        y = tf.reshape(y, [batch, rows, 4, columns, 4, 2])
        y = tf.reshape(tf.transpose(y, [0, 1, 3, 2, 4, 5]), [-1, 16, 2])
        y = tf.nn.softmax(y @ tf.transpose(y, [0, 2, 1])) @ y
        y = tf.transpose(tf.reshape(y, [batch, rows, columns, 4, 4, 2]), [0, 1, 3, 2, 4, 5])
        return tf.reshape(y, [batch, rows * 4, columns * 4, 2])[:, :height, :width]

    check(windows, *((numbers(2, height, width, 2),) for height, width in ((4, 8), (5, 6), (3, 17), (1, 1))))


def test_sizes_of_inputs_may_be_tied_to_each_other():
    """Rows for places in a sequence: as many as there are places, which no rule about sizes can know."""

    @tf.function(
        input_signature=[
            tf.TensorSpec([None, None, 3], name="a_text"),
            tf.TensorSpec([None, None, 2, 2, 3], name="b_images"),
            tf.TensorSpec([None, None], tf.int32, name="c_places"),
        ]
    )
    def interleave(text, images, places):
        batch, length = tf.shape(text)[0], tf.shape(text)[1]
        rows = tf.reshape(images, [-1, 3])  # four for each image
        flat = tf.reshape(text, [batch * length, 3])
        offsets = tf.reshape(places + tf.range(batch)[:, tf.newaxis] * length, [-1, 1])
        return tf.reshape(tf.tensor_scatter_nd_update(flat, offsets, rows), [batch, length, 3])

    def arguments(batch, length, images):
        places = np.stack([np.random.default_rng(i).permutation(length)[: images * 4] for i in range(batch)])
        return numbers(batch, length, 3), numbers(batch, images, 2, 2, 3), places.astype(np.int32)

    check(interleave, arguments(1, 8, 1), arguments(2, 10, 2), arguments(3, 12, 3))


def test_a_size_that_only_the_model_knows():
    table = tf.constant(numbers(77, 4))

    @tf.function(input_signature=[tf.TensorSpec([None, None, 4], name="x")])
    def positioned(x):
        return tf.concat([x, tf.tile(table[tf.newaxis], [tf.shape(x)[0], 1, 1])], axis=2)

    check(positioned, (numbers(1, 77, 4),), (numbers(3, 77, 4),))


def test_choices_between_single_elements_keep_their_rank():
    table, more = tf.constant(numbers(1, 6)), tf.constant(numbers(4, 6))

    @tf.function(input_signature=[tf.TensorSpec([None, 6], name="x")])
    def rows(x):
        def take(values, count):
            places = tf.range(count)
            return tf.gather(values, tf.where(places < 0, places + count, places))

        return tf.concat([take(table, 1), take(more, 4), x], axis=0)

    check(rows, (numbers(2, 6),), (numbers(1, 6),))


def test_unknown_ranks():
    @tf.function(input_signature=[tf.TensorSpec(None, name="a"), tf.TensorSpec(None, name="b")])
    def mixed(a, b):
        return tf.nn.relu(a + b) * 2.0, tf.reduce_sum(a), tf.reshape(b, [-1]), tf.rank(a), tf.shape(b)

    content = converted(mixed)
    for shape in ((3,), (2, 3), (2, 1, 4), (1, 2, 3, 4)):
        check(mixed, (numbers(*shape), numbers(*shape) + 1), content=content)

    @tf.function(input_signature=[tf.TensorSpec(None, name="x")])
    def needs_it(x):
        return tf.transpose(x, [1, 0])

    with pytest.raises(leadline.UnsupportedError, match="unknown rank"):
        lite.TFLiteConverter.from_concrete_functions([needs_it.get_concrete_function()]).convert()


@pytest.mark.parametrize("shape", [[None, None, None], [None, 6, 5], [2, None, 40]], ids=str)
def test_complex_numbers_are_pairs_of_real_ones(shape):
    @tf.function(input_signature=[tf.TensorSpec(shape, name="x"), tf.TensorSpec(shape, name="y")])
    def transforms(x, y):
        z = tf.complex(x, y)
        whole = tf.signal.fft2d(z)
        mixed = tf.transpose(tf.signal.fft(z) * tf.math.conj(z), [0, 2, 1])
        back = tf.signal.ifft2d(whole) - z / 2.0
        return tf.math.real(whole), tf.math.imag(whole), tf.abs(mixed), tf.math.angle(z), tf.math.real(back)

    sizes = [[size or other for size, other in zip(shape, others, strict=True)] for others in ((2, 4, 3), (2, 7, 40))]
    check(transforms, *((numbers(*size), numbers(*size) + 0.5) for size in sizes))


def test_spectra_become_signals_again():
    @tf.function(input_signature=[tf.TensorSpec([None, 8], name="x")])
    def filtered(x):
        spectrum = tf.signal.rfft(x)
        return tf.signal.irfft(spectrum * tf.complex(tf.constant([1.0, 0.5, 0.25, 0.0, 0.0]), 0.0))

    check(filtered, (numbers(1, 8),), (numbers(3, 8),))


def test_nothing_follows_from_a_size_of_zero():
    """What is rotated of too few channels: none of them."""

    @tf.function(input_signature=[tf.TensorSpec([None, None, 3], name="x")])
    def rotated(x):
        length = tf.shape(x)[1]
        angles = tf.einsum("i,j->ij", tf.cast(tf.range(length), tf.float32), tf.zeros([0]))
        wide = tf.reshape(tf.stack([angles, angles], axis=-2), [length, 0])
        part = x[..., :0] * tf.cos(wide)
        return tf.concat([part, x], axis=-1)

    check(rotated, (numbers(1, 2, 3),), (numbers(2, 5, 3),))


def test_sizes_of_branches_that_only_a_run_knows():
    @tf.function(
        input_signature=[
            tf.TensorSpec([None, 8, 8, 3], name="a_features"),
            tf.TensorSpec([None, None, None, 1], name="b_mask"),
        ]
    )
    def prompted(features, mask):
        filters = tf.ones([2, 2, 1, 3])
        dense = tf.cond(
            tf.reduce_sum(mask) > 0.0,
            lambda: tf.nn.conv2d(mask, filters, 2, "SAME"),
            lambda: tf.zeros_like(features) + 0.5,
        )
        return features + dense

    masks = [np.zeros((2, 3, 5, 1), np.float32), np.ones((2, 16, 16, 1), np.float32)]
    check(prompted, *((numbers(2, 8, 8, 3), mask) for mask in masks))


def test_error_functions_of_half_precision():
    @tf.function(input_signature=[tf.TensorSpec([None, 4], name="x")])
    def halves(x):
        half = tf.cast(x, tf.float16)
        return tf.cast(tf.math.erf(half), tf.float32) + tf.cast(tf.math.erfc(half), tf.float32) * 2.0

    runner = lite.Interpreter(model_content=converted(halves)).get_signature_runner()
    (result,) = runner(x=numbers(3, 4)).values()
    np.testing.assert_allclose(result, halves(numbers(3, 4)).numpy(), atol=2e-3)


@pytest.mark.parametrize("count", [20, None])
def test_loops_over_tiles_of_a_size_that_the_program_has(count):
    @tf.function(input_signature=[tf.TensorSpec([count, 4], name="boxes"), tf.TensorSpec([count], name="scores")])
    def suppressed(boxes, scores):
        return tf.image.non_max_suppression_padded(boxes, scores, 10, pad_to_max_output_size=True)

    corners = np.sort(np.random.default_rng(1).random((20, 2, 2)), 1).reshape(20, 4).astype(np.float32)
    scores = np.random.default_rng(2).random(20).astype(np.float32)
    runner = lite.Interpreter(model_content=converted(suppressed)).get_signature_runner()
    for used in (20, 7) if count is None else (20,):
        chosen, valid = suppressed(corners[:used], scores[:used])
        made = sorted(runner(boxes=corners[:used], scores=scores[:used]).values(), key=np.ndim)
        assert made[0] == valid
        np.testing.assert_array_equal(made[1], chosen)


def test_a_vector_of_any_length_may_be_a_sound():
    @tf.function(input_signature=[tf.TensorSpec([None], name="x")])
    def spectrum(x):
        return tf.abs(tf.signal.stft(x, 64, 16))

    content = converted(spectrum)
    for length in (64, 256, 400):
        x = np.random.default_rng(length).normal(size=length).astype(np.float32)
        (made,) = run(content, x)
        np.testing.assert_allclose(made, spectrum(x).numpy(), atol=1e-3)


@pytest.mark.parametrize("element_shape", [None, (3,)], ids=["unknown", "known"])
def test_arrays_that_begin_empty_grow_as_they_are_written(element_shape):
    @tf.function(input_signature=[tf.TensorSpec([None, 3], name="x")])
    def doubled(x):
        array = tf.TensorArray(tf.float32, size=0, dynamic_size=True, element_shape=element_shape)
        for i in tf.range(tf.shape(x)[0]):
            array = array.write(i, x[i] * 2.0)
        return array.stack()

    check(doubled, *[(numbers(rows, 3),) for rows in (1, 4, 7)])


def test_an_array_grows_until_the_data_say_stop():
    @tf.function(input_signature=[tf.TensorSpec([None], name="x")])
    def count(x):
        array = tf.TensorArray(tf.float32, size=0, dynamic_size=True, element_shape=())
        i = 0
        while tf.reduce_sum(x) > tf.cast(i, tf.float32):
            array = array.write(i, tf.cast(i, tf.float32))
            i += 1
        return array.stack()

    check(count, (np.float32([0.5]),), (np.float32([1.0, 2.0, 1.5]),))


def any_of(*ranks):
    """A signature of inputs a, b, ... of these ranks whose sizes are unknown."""
    return [tf.TensorSpec([None] * rank, name="abcd"[i]) for i, rank in enumerate(ranks)]


def test_which_input_is_longer_is_not_decided_when_converting():
    @tf.function(input_signature=any_of(2, 2))
    def joined(a, b):
        length = tf.maximum(tf.shape(a)[1], tf.shape(b)[1])
        a, b = (tf.pad(part, [[0, 0], [0, length - tf.shape(part)[1]]]) for part in (a, b))
        return a * 2.0 + b

    @tf.function(input_signature=any_of(2, 2))
    def longest(a, b):
        return tf.cond(tf.shape(a)[1] >= tf.shape(b)[1], lambda: tf.reduce_sum(a, 1), lambda: tf.reduce_max(b, 1))

    for function in (joined, longest):
        check(function, *((numbers(2, a), numbers(2, b)) for a, b in ((3, 7), (7, 3), (4, 4), (1, 2))))


def test_pictures_are_cut_to_the_size_of_others():
    @tf.function(input_signature=any_of(4, 4))
    def cut(a, b):
        height, width = tf.shape(b)[1], tf.shape(b)[2]
        top, left = (tf.shape(a)[1] - height) // 2, (tf.shape(a)[2] - width) // 2
        return a[:, top : top + height, left : left + width] + b

    sizes = (((9, 8), (5, 4)), ((4, 4), (4, 4)), ((7, 4), (3, 4)))
    check(cut, *((numbers(1, *a, 2), numbers(1, *b, 2)) for a, b in sizes))


def test_inputs_have_different_numbers_of_rows():
    @tf.function(input_signature=any_of(2, 2))
    def grouped(a, b):
        count = tf.shape(b)[0] // tf.shape(a)[0]
        return tf.reshape(b, [tf.shape(a)[0], count, tf.shape(b)[1]]) * a[:, tf.newaxis, :1]

    check(grouped, *((numbers(a, 3), numbers(b, 4)) for a, b in ((2, 6), (1, 3), (3, 3))))


@pytest.mark.parametrize("target", [(24, 20), (8, 32), (32, 8)])
def test_pictures_are_cut_to_a_shape(target):
    @tf.function(input_signature=any_of(4))
    def shaped(a):
        height, width = tf.shape(a)[1], tf.shape(a)[2]
        high = tf.minimum(height, width * target[0] // target[1])
        wide = tf.minimum(width, height * target[1] // target[0])
        top, left = (height - high) // 2, (width - wide) // 2
        return a[:, top : top + high, left : left + wide]

    check(shaped, *((numbers(1, *size, 2),) for size in ((40, 30), (24, 50), (200, 10), (10, 200), (24, 20))))


@pytest.mark.parametrize("limit", [17, 2000, 40000])
def test_limits_that_no_usual_size_meets(limit):
    @tf.function(input_signature=any_of(1))
    def limited(a):
        length = tf.shape(a)[0]
        above = tf.cond(length > limit, lambda: a[:limit], lambda: a * 2.0)
        return tf.cond(tf.equal(length, limit), lambda: above + 1.0, lambda: above)

    check(limited, *((numbers(size),) for size in (limit, limit - 1, limit + 1, 3)))


def test_branches_that_are_not_taken_may_not_fit():
    """Where the length is above 5, the second branch would pad by a negative number."""

    @tf.function(input_signature=any_of(2))
    def five(a):
        length = tf.shape(a)[1]
        return tf.cond(length > 5, lambda: a[:, :5], lambda: tf.pad(a, [[0, 0], [0, 5 - length]]))

    check(five, *((numbers(2, length),) for length in (8, 5, 2, 30)))
