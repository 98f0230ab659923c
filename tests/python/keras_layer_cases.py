# SPDX-License-Identifier: Apache-2.0
"""Every class of keras.layers, in several configurations each; test_keras_layers.py runs them."""

import keras
import numpy as np
from keras import layers
from keras_cases import Case, Spec, bools, ints

CASES: list[Case] = []


def add(name: str, function, *inputs, tolerance: float = 1e-4, randomize: bool = True) -> None:
    CASES.append(Case(name, function, list(inputs), tolerance, randomize))


def layer(name: str, *shapes, tolerance: float = 1e-4, **variants) -> None:
    """One case per variant: keyword arguments of the class."""
    for variant, arguments in variants.items():
        make = getattr(layers, name)

        def function(*tensors, make=make, arguments=arguments):
            return make(**arguments)(tensors[0] if len(tensors) == 1 else list(tensors))

        add(f"{name}-{variant}", function, *shapes, tolerance=tolerance)


FIRST = {"data_format": "channels_first"}

# Dense and its kin
layer(
    "Dense",
    (6,),
    plain={"units": 5},
    no_bias={"units": 3, "use_bias": False},
    softmax={"units": 4, "activation": "softmax"},
)
layer("Dense", (4, 6), sequence={"units": 5}, relu={"units": 5, "activation": "relu"})
layer("Dense", (None, 6), any_length={"units": 5})
layer("Dense", (2, 3, 4, 5), rank5={"units": 2, "activation": "gelu"})
layer(
    "EinsumDense",
    (4, 6),
    plain={"equation": "abc,cd->abd", "output_shape": (None, 5), "bias_axes": "d"},
    heads={"equation": "abc,cde->abde", "output_shape": (None, 2, 5), "bias_axes": "de"},
    partial_bias={"equation": "abc,cde->abde", "output_shape": (None, 2, 5), "bias_axes": "d"},
    dots={"equation": "...x,xy->...y", "output_shape": 5, "bias_axes": "y"},
    no_bias={"equation": "abc,bcd->abd", "output_shape": (4, 3)},
    all_three={"equation": "abc,bcd->abd", "output_shape": (4, 3), "bias_axes": "bd"},
    mixing={"equation": "abc,bd->adc", "output_shape": (3, 6), "bias_axes": "d"},
    elementwise={"equation": "abc,c->abc", "output_shape": (4, 6), "bias_axes": "c"},
)
layer("EinsumDense", (4, 2, 5), merge={"equation": "abcd,cde->abe", "output_shape": (None, 6), "bias_axes": "e"})
layer("Embedding", ints(5), plain={"input_dim": 9, "output_dim": 4})
layer("Embedding", ints(5, dtype="int64"), int64={"input_dim": 9, "output_dim": 4})
layer("Embedding", Spec((5,), "float32", 0, 8.9), float={"input_dim": 9, "output_dim": 4})
layer("ReversibleEmbedding", ints(5), plain={"input_dim": 9, "output_dim": 4})


def reversible(x, **arguments):
    table = layers.ReversibleEmbedding(9, 4, **arguments)
    return table(layers.Dense(4)(table(x)), reverse=True)


add("ReversibleEmbedding-tied", reversible, ints(5))
add("ReversibleEmbedding-untied", lambda x: reversible(x, tie_weights=False), ints(5))
add("ReversibleEmbedding-capped", lambda x: reversible(x, logit_soft_cap=2.0), ints(5))

# Convolutions
for n, spatial in ((1, (11,)), (2, (9, 11)), (3, (5, 6, 7))):
    layer(
        f"Conv{n}D",
        (*spatial, 4),
        plain={"filters": 3, "kernel_size": 3},
        strided={"filters": 3, "kernel_size": 2, "strides": 2, "padding": "same", "activation": "relu"},
        dilated={"filters": 3, "kernel_size": 2, "dilation_rate": 2, "padding": "same", "use_bias": False},
        groups={"filters": 6, "kernel_size": 3, "groups": 2, "padding": "same"},
    )
    layer(f"Conv{n}D", (4, *spatial), first={"filters": 3, "kernel_size": 3, "padding": "same", **FIRST})
    layer(
        f"Conv{n}DTranspose",
        (*spatial, 4),
        plain={"filters": 3, "kernel_size": 3},
        strided={"filters": 3, "kernel_size": 3, "strides": 2, "padding": "same", "activation": "tanh"},
        wide_stride={"filters": 3, "kernel_size": 2, "strides": 3, "use_bias": False},
        dilated={"filters": 3, "kernel_size": 3, "dilation_rate": 2},
        dilated_same={"filters": 3, "kernel_size": 3, "dilation_rate": 2, "padding": "same"},
        output_padding={"filters": 3, "kernel_size": 3, "strides": 2, "padding": "same", "output_padding": 1},
    )
    layer(
        f"Conv{n}DTranspose",
        (4, *spatial),
        first={"filters": 3, "kernel_size": 3, "strides": 2, "padding": "same", **FIRST},
    )
    layer(
        f"ConvLSTM{n}D",
        (4, *(5, 6, 4)[:n], 2),
        last={"filters": 3, "kernel_size": 3},
        sequences={"filters": 3, "kernel_size": 3, "padding": "same", "return_sequences": True},
        strided={"filters": 2, "kernel_size": 2, "strides": 2, "padding": "same", "go_backwards": True},
    )
layer("Conv1D", (11, 4), causal={"filters": 3, "kernel_size": 3, "padding": "causal", "dilation_rate": 2})
layer("Conv1D", (None, 4), any_length={"filters": 3, "kernel_size": 3, "padding": "same"})
layer("Conv2D", (None, None, 4), any_size={"filters": 3, "kernel_size": 3, "strides": 2})
layer("Conv1DTranspose", (None, 4), any_length={"filters": 3, "kernel_size": 3, "strides": 2, "padding": "same"})
layer(
    "Conv2DTranspose",
    (None, None, 4),
    any_size={"filters": 3, "kernel_size": 3, "strides": 2, "padding": "same"},
    any_size_valid={"filters": 3, "kernel_size": 3, "strides": 2},
)
layer("Conv3DTranspose", (None, 6, None, 4), any_size={"filters": 3, "kernel_size": 3, "strides": 2, "padding": "same"})
layer(
    "ConvLSTM2D",
    (4, 5, 6, 2),
    state={"filters": 3, "kernel_size": 3, "return_state": True, "padding": "same"},
    dilated={
        "filters": 3,
        "kernel_size": 2,
        "dilation_rate": 2,
        "use_bias": False,
        "return_sequences": True,
        "go_backwards": True,
    },
)
layer("ConvLSTM2D", (4, 2, 5, 6), first={"filters": 3, "kernel_size": 3, "return_sequences": True, **FIRST})
for n, spatial in ((1, (11,)), (2, (9, 11))):
    for kind in ("DepthwiseConv", "SeparableConv"):
        more = {"filters": 5} if kind == "SeparableConv" else {}
        layer(
            f"{kind}{n}D",
            (*spatial, 4),
            plain={"kernel_size": 3, **more},
            multiplier={"kernel_size": 3, "depth_multiplier": 2, "padding": "same", "activation": "relu", **more},
            strided={"kernel_size": 3, "strides": 2, "padding": "same", "use_bias": False, **more},
            dilated={"kernel_size": 2, "dilation_rate": 2, **more},
        )
        layer(f"{kind}{n}D", (4, *spatial), first={"kernel_size": 3, **FIRST, **more})
layer("DepthwiseConv2D", (9, 11, 1), one_channel={"kernel_size": 3, "depth_multiplier": 4})

# Pooling
for n, spatial in ((1, (11,)), (2, (9, 11)), (3, (5, 6, 7))):
    for kind in ("Max", "Average"):
        layer(
            f"{kind}Pooling{n}D",
            (*spatial, 3),
            plain={"pool_size": 2},
            same={"pool_size": 3, "strides": 2, "padding": "same"},
            overlapping={"pool_size": 3, "strides": 1},
        )
        layer(f"{kind}Pooling{n}D", (3, *spatial), first={"pool_size": 2, **FIRST})
        layer(f"Global{kind}Pooling{n}D", (*spatial, 3), plain={}, keepdims={"keepdims": True})
        layer(f"Global{kind}Pooling{n}D", (3, *spatial), first=FIRST)
        layer(f"Adaptive{kind}Pooling{n}D", (*spatial, 3), even={"output_size": 1}, uneven={"output_size": 4})
        layer(f"Adaptive{kind}Pooling{n}D", (3, *spatial), first={"output_size": 3, **FIRST})
layer("AdaptiveAveragePooling2D", (8, 12, 3), divides={"output_size": (4, 3)})
layer("AdaptiveMaxPooling2D", (8, 12, 3), mixed={"output_size": (4, 5)})
layer("MaxPooling2D", (None, None, 3), any_size={"pool_size": 2})
layer("GlobalAveragePooling1D", (None, 3), any_length={})
for alias in ("AvgPool1D", "MaxPool1D"):
    layer(alias, (8, 3), alias={"pool_size": 2})
for alias in ("AvgPool2D", "MaxPool2D"):
    layer(alias, (8, 6, 3), alias={"pool_size": 2})
for alias in ("AvgPool3D", "MaxPool3D"):
    layer(alias, (8, 6, 4, 3), alias={"pool_size": 2})
for n in (1, 2, 3):
    for alias in (f"GlobalAvgPool{n}D", f"GlobalMaxPool{n}D"):
        layer(alias, (*(8, 6, 4)[:n], 3), alias={})
    layer(f"Convolution{n}D", (*(8, 6, 4)[:n], 3), alias={"filters": 2, "kernel_size": 2})
    layer(f"Convolution{n}DTranspose", (*(8, 6, 4)[:n], 3), alias={"filters": 2, "kernel_size": 2})
for n in (1, 2):
    layer(f"SeparableConvolution{n}D", (*(8, 6)[:n], 3), alias={"filters": 2, "kernel_size": 2})

# Shapes
layer(
    "Reshape",
    (4, 6),
    flat={"target_shape": (24,)},
    unknown={"target_shape": (3, -1)},
    deeper={"target_shape": (2, 2, 3, 2)},
)
layer("Reshape", (None, 6), any_length={"target_shape": (-1, 3)})
layer("Permute", (4, 6, 2), turned={"dims": (3, 1, 2)})
layer("Flatten", (4, 6, 2), plain={}, first=FIRST)
layer("Flatten", (), scalar={})
layer("RepeatVector", (4,), plain={"n": 3})
for n, spatial in ((1, (7,)), (2, (6, 7)), (3, (5, 6, 7))):
    pairs = [(1, 2), (2, 0), (0, 1)][:n]
    pair = pairs[0] if n == 1 else pairs
    layer(f"ZeroPadding{n}D", (*spatial, 3), plain={"padding": 1}, pairs={"padding": pair})
    layer(f"Cropping{n}D", (*spatial, 3), plain={"cropping": 1}, pairs={"cropping": pair})
    layer(f"UpSampling{n}D", (*spatial, 3), plain={"size": 2})
    layer(f"ZeroPadding{n}D", (3, *spatial), first={"padding": pair, **FIRST})
    if n > 1:
        layer(f"Cropping{n}D", (3, *spatial), first={"cropping": pairs, **FIRST})
        layer(f"UpSampling{n}D", (3, *spatial), first={"size": (3, 2, 1)[:n], **FIRST})
layer("UpSampling2D", (5, 6, 3), bilinear={"size": (2, 3), "interpolation": "bilinear"})
layer("UpSampling2D", (None, None, 3), any_size={"size": 2})
layer(
    "Resizing",
    (9, 7, 3),
    smaller={"height": 4, "width": 5},
    larger={"height": 12, "width": 15},
    nearest={"height": 13, "width": 4, "interpolation": "nearest"},
    crop={"height": 4, "width": 6, "crop_to_aspect_ratio": True},
    pad={"height": 4, "width": 6, "pad_to_aspect_ratio": True},
)
layer("Resizing", (3, 9, 7), first={"height": 4, "width": 5, **FIRST})
layer("CenterCrop", (9, 7, 3), smaller={"height": 4, "width": 5}, same={"height": 9, "width": 7})
layer("CenterCrop", (5, 6, 3), larger={"height": 8, "width": 7})
layer("CenterCrop", (3, 9, 7), first={"height": 4, "width": 5, **FIRST})

# Merging
for name in ("Add", "Multiply", "Average", "Maximum", "Minimum"):
    layer(name, (4, 6), (4, 6), two={})
    layer(name, (4, 6), (4, 6), (4, 6), three={})
    layer(name, (4, 6), (6,), ranks={})
    layer(name, (4, 6), (4, 1), broadcast={})
layer("Subtract", (4, 6), (4, 6), two={})
layer("Concatenate", (4, 6), (4, 3), plain={})
layer("Concatenate", (4, 6), (3, 6), axis={"axis": 1})
layer("Dot", (6,), (6,), vectors={"axes": 1}, cosine={"axes": -1, "normalize": True})
layer("Dot", (4, 6), (5, 6), matrices={"axes": 2})
layer("Dot", (4, 6), (4, 5), first_axes={"axes": 1})
layer("Dot", (4, 6), (6, 5), mixed={"axes": (2, 1), "normalize": True})
layer("Dot", (4, 6), (6,), vector={"axes": (2, 1)})
layer("Dot", (6,), (6, 5), vector_first={"axes": (1, 1)})
layer("Dot", (3, 4, 6), (6, 2, 5), rank4={"axes": (3, 1)})

# Normalizations
layer("BatchNormalization", (4, 6), plain={}, no_scale={"scale": False}, no_center={"center": False}, axis={"axis": 1})
layer("BatchNormalization", (3, 5, 6), image={"epsilon": 0.1}, axis1={"axis": 1})
layer(
    "LayerNormalization",
    (4, 6),
    plain={},
    axes={"axis": (1, 2)},
    axis={"axis": 1},
    bare={"scale": False, "center": False},
)
layer("LayerNormalization", (3, 4, 6), apart={"axis": (1, 3)})
layer(
    "GroupNormalization",
    (4, 6),
    groups={"groups": 3},
    instance={"groups": -1},
    one={"groups": 1},
    axis={"groups": 2, "axis": 1},
)
layer("GroupNormalization", (3, 5, 6), image={"groups": 2}, axis1={"groups": 3, "axis": 1})
layer("UnitNormalization", (4, 6), plain={}, axis={"axis": 1}, axes={"axis": (1, 2)})
layer("RMSNormalization", (4, 6), plain={}, axes={"axis": (1, 2)})
layer(
    "Rescaling",
    (4, 3),
    plain={"scale": 0.5, "offset": -1},
    lists={"scale": [1.0, 2.0, 0.5], "offset": [0.0, 1.0, -1.0]},
)
layer("Rescaling", ints(4, 3, high=255, dtype="uint8"), bytes={"scale": 1 / 127.5, "offset": -1})
layer(
    "Normalization",
    (4, 3),
    plain={"mean": [1.0, 2.0, 3.0], "variance": [1.0, 0.5, 2.0]},
    invert={"mean": [1.0, 2.0, 3.0], "variance": [1.0, 0.5, 2.0], "invert": True},
    single={"axis": None, "mean": 1.0, "variance": 2.0},
    axis1={"axis": 1, "mean": [1.0, 2.0, 3.0, 4.0], "variance": [1.0, 0.5, 2.0, 3.0]},
    axes={"axis": (1, 2), "mean": np.arange(12.0).reshape(4, 3), "variance": np.arange(1.0, 13.0).reshape(4, 3)},
)


def adapted(x, **arguments):
    normalization = layers.Normalization(**arguments)
    normalization.adapt(np.random.default_rng(1).normal(1, 3, (20, *x.shape[1:])))
    return normalization(x)


add("Normalization-adapted", adapted, (4, 3), randomize=False)
add("Normalization-adapted_axes", lambda x: adapted(x, axis=(1, 2)), (4, 3), randomize=False)
add("Normalization-adapted_all", lambda x: adapted(x, axis=None), (4, 3), randomize=False)
add("SpectralNormalization-dense", lambda x: layers.SpectralNormalization(layers.Dense(5))(x), (6,))
add("SpectralNormalization-conv", lambda x: layers.SpectralNormalization(layers.Conv2D(5, 3))(x), (6, 6, 3))

# Activations
for name in ("elu", "relu", "relu6", "selu", "celu", "gelu", "silu", "swish", "sigmoid", "hard_sigmoid", "hard_silu",
             "tanh", "hard_tanh", "exponential", "softplus", "softsign", "mish", "log_sigmoid", "tanh_shrink", "soft_shrink",
             "hard_shrink", "squareplus", "softmax", "log_softmax", "leaky_relu", "linear", "glu", "sparse_plus",
             "sparse_sigmoid", "threshold", "sparsemax"):  # fmt: skip
    if name == "threshold":
        continue  # has no default of its parameters
    layer("Activation", (4, 6), **{name: {"activation": name}})
layer(
    "ReLU",
    (4, 6),
    plain={},
    bounded={"max_value": 1.5},
    six={"max_value": 6.0},
    slope={"negative_slope": 0.2},
    threshold={"threshold": 0.5},
    all={"max_value": 1.5, "negative_slope": 0.1, "threshold": 0.5},
)
layer("LeakyReLU", (4, 6), plain={}, steep={"negative_slope": 0.7})
layer("PReLU", (4, 5, 6), plain={"alpha_initializer": "ones"}, shared={"shared_axes": [1, 2]})
layer("ELU", (4, 6), plain={}, alpha={"alpha": 0.5})
layer("Softmax", (4, 6), plain={}, axis={"axis": 1}, axes={"axis": (1, 2)})
add("Softmax-mask", lambda x, m: layers.Softmax()(x, mask=m), (4, 6), bools(4, 6))
add("Softmax-mask_axes", lambda x, m: layers.Softmax(axis=(1, 2))(x, mask=m), (4, 6), bools(4, 6))

# Those that vanish
for name, arguments in {
    "ActivityRegularization": {"l2": 0.1}, "AlphaDropout": {"rate": 0.5}, "Dropout": {"rate": 0.5}, "GaussianDropout": {"rate": 0.5},
    "GaussianNoise": {"stddev": 0.5}, "Identity": {}}.items():  # fmt: skip
    layer(name, (4, 6), plain=arguments)
layer("SpatialDropout1D", (4, 6), plain={"rate": 0.5})
layer("SpatialDropout2D", (4, 5, 6), plain={"rate": 0.5})
layer("SpatialDropout3D", (4, 5, 6, 2), plain={"rate": 0.5})
IMAGE = Spec((6, 8, 3), "float32", 0, 255)
for name, arguments in {
    "AugMix": {}, "AutoContrast": {}, "CutMix": {}, "MixUp": {}, "RandAugment": {}, "Solarization": {},
    "RandomBrightness": {"factor": 0.5}, "RandomColorDegeneration": {"factor": 0.5}, "RandomColorJitter": {}, "RandomContrast": {"factor": 0.5},
    "RandomElasticTransform": {}, "RandomErasing": {}, "RandomFlip": {}, "RandomGaussianBlur": {}, "RandomGrayscale": {}, "RandomHue": {"factor": 0.5},
    "RandomInvert": {}, "RandomPerspective": {}, "RandomPosterization": {"factor": 4}, "RandomRotation": {"factor": 0.2}, "RandomSaturation": {"factor": 0.5},
    "RandomSharpness": {"factor": 0.5}, "RandomShear": {}, "RandomTranslation": {"height_factor": 0.2, "width_factor": 0.2}, "RandomZoom": {"height_factor": 0.2},
}.items():  # fmt: skip
    layer(name, IMAGE, plain=arguments)
layer(
    "RandomCrop",
    (6, 8, 3),
    smaller={"height": 4, "width": 5},
    same={"height": 6, "width": 8},
    larger={"height": 9, "width": 9},
)

# Attention
layer(
    "Attention",
    (4, 6),
    (5, 6),
    plain={},
    scaled={"use_scale": True},
    concat={"score_mode": "concat"},
    concat_scaled={"score_mode": "concat", "use_scale": True},
)
layer("Attention", (4, 6), (5, 6), (5, 6), key={})
layer("AdditiveAttention", (4, 6), (5, 6), plain={}, unscaled={"use_scale": False})
layer("AdditiveAttention", (4, 6), (5, 6), (5, 6), key={})
for kind in ("Attention", "AdditiveAttention"):
    make = getattr(layers, kind)
    add(f"{kind}-causal", lambda q, v, make=make: make()([q, v], use_causal_mask=True), (4, 6), (5, 6))
    add(f"{kind}-any_length", lambda q, v, make=make: make()([q, v], use_causal_mask=True), (None, 6), (None, 6))
    add(f"{kind}-scores", lambda q, v, make=make: make()([q, v], return_attention_scores=True), (4, 6), (5, 6))
    add(f"{kind}-masks", lambda q, v, a, b, make=make: make()([q, v], mask=[a, b]), (4, 6), (5, 6), bools(4), bools(5))
    add(f"{kind}-value_mask", lambda q, v, b, make=make: make()([q, v], mask=[None, b]), (4, 6), (5, 6), bools(5))


def embedded(tokens):
    return layers.Embedding(9, 6, mask_zero=True)(tokens)


add("Attention-implicit", lambda a, b: layers.Attention()([embedded(a), embedded(b)]), ints(4, high=3), ints(5, high=3))
HEADS = {"num_heads": 2, "key_dim": 3}


def heads(**arguments):
    call = arguments.pop("call", {})
    return lambda q, v: layers.MultiHeadAttention(**HEADS, **arguments)(q, v, **call)


add("MultiHeadAttention-plain", heads(), (4, 6), (5, 6))
add("MultiHeadAttention-sizes", heads(value_dim=4, output_shape=7, use_bias=False), (4, 6), (5, 6))
add("MultiHeadAttention-causal", heads(call={"use_causal_mask": True}), (4, 6), (5, 6))
add("MultiHeadAttention-any_length", heads(call={"use_causal_mask": True}), (None, 6), (None, 6))
add("MultiHeadAttention-scores", heads(call={"return_attention_scores": True}), (4, 6), (5, 6))
add("MultiHeadAttention-rank4", heads(attention_axes=(2,)), (3, 4, 6), (3, 5, 6))
add("MultiHeadAttention-axes", heads(attention_axes=(1, 2)), (3, 4, 6), (3, 5, 6))
add(
    "MultiHeadAttention-mask",
    lambda q, v, m: layers.MultiHeadAttention(**HEADS)(q, v, attention_mask=m),
    (4, 6),
    (5, 6),
    bools(4, 5),
)
add("MultiHeadAttention-key", lambda q, v, k: layers.MultiHeadAttention(**HEADS)(q, v, k), (4, 6), (5, 6), (5, 7))
add(
    "MultiHeadAttention-masks",
    lambda q, v, a, b: layers.MultiHeadAttention(**HEADS)(q, v, query_mask=a, value_mask=b),
    (4, 6),
    (5, 6),
    bools(4),
    bools(5),
)
add(
    "MultiHeadAttention-implicit",
    lambda a, b: layers.MultiHeadAttention(**HEADS)(embedded(a), embedded(b)),
    ints(4, high=3),
    ints(5, high=3),
)


def add_and_attend(a):
    """Keras 3 takes the mask from what was attended to, so that Add sees one of two and passes on none."""
    a = embedded(a)
    b = layers.Add()([a, layers.MultiHeadAttention(**HEADS)(a, a)])
    return layers.GlobalAveragePooling1D()(layers.Attention()([b, b]))


add("MultiHeadAttention-then_no_mask", add_and_attend, ints(4, high=3))
add("MultiHeadAttention-gate", heads(use_gate=True), (4, 6), (5, 6))
QUERIES = {"head_dim": 3, "num_query_heads": 4, "num_key_value_heads": 2}
for key, call in {
    "plain": {},
    "causal": {"use_causal_mask": True},
    "scores": {"return_attention_scores": True},
}.items():
    add(
        f"GroupQueryAttention-{key}",
        lambda q, v, call=call: layers.GroupQueryAttention(**QUERIES)(q, v, **call),
        (4, 6),
        (5, 6),
    )
add(
    "GroupQueryAttention-mask",
    lambda q, v, m: layers.GroupQueryAttention(**QUERIES)(q, v, attention_mask=m),
    (4, 6),
    (5, 6),
    bools(4, 5),
)
add("GroupQueryAttention-gate", lambda q, v: layers.GroupQueryAttention(**QUERIES, use_gate=True)(q, v), (4, 6), (5, 6))

# Recurrent layers
for name in ("LSTM", "GRU", "SimpleRNN"):
    layer(
        name,
        (5, 4),
        last={"units": 3},
        sequences={"units": 3, "return_sequences": True},
        backwards={"units": 3, "go_backwards": True, "return_sequences": True},
        state={"units": 3, "return_state": True},
        no_bias={"units": 3, "use_bias": False},
        relu={"units": 3, "activation": "relu"},
        unrolled={"units": 3, "unroll": True},
    )
    layer(name, (None, 4), any_length={"units": 3, "return_sequences": True})
    add(
        f"{name}-mask",
        lambda x, m, name=name: getattr(layers, name)(3, return_sequences=True)(x, mask=m),
        (5, 4),
        bools(5),
    )
    add(
        f"{name}-mask_zero",
        lambda x, m, name=name: (
            getattr(layers, name)(3, return_sequences=True, zero_output_for_mask=True)(x, mask=m)
            if name != "SimpleRNN"
            else layers.SimpleRNN(3)(x, mask=m)
        ),
        (5, 4),
        bools(5),
    )
    cell = f"{name}Cell"
    add(f"{cell}-rnn", lambda x, cell=cell: layers.RNN(getattr(layers, cell)(3))(x), (5, 4))
    add(
        f"{cell}-sequences",
        lambda x, cell=cell: layers.RNN(getattr(layers, cell)(3), return_sequences=True, return_state=True)(x),
        (5, 4),
    )
    add(
        f"{cell}-bidirectional",
        lambda x, cell=cell: layers.Bidirectional(layers.RNN(getattr(layers, cell)(3), return_sequences=True))(x),
        (5, 4),
    )
    add(
        f"{cell}-mask",
        lambda x, m, cell=cell: layers.RNN(getattr(layers, cell)(3), go_backwards=True)(x, mask=m),
        (5, 4),
        bools(5),
    )
layer("GRU", (5, 4), reset_before={"units": 3, "reset_after": False})
add("GRUCell-reset_before", lambda x: layers.RNN(layers.GRUCell(3, reset_after=False))(x), (5, 4))
add("LSTM-initial", lambda x, h, c: layers.LSTM(3)(x, initial_state=[h, c]), (5, 4), (3,), (3,))


def stacked():
    return [layers.LSTMCell(3), layers.GRUCell(4), layers.SimpleRNNCell(2)]


add("StackedRNNCells-last", lambda x: layers.RNN(layers.StackedRNNCells(stacked()))(x), (5, 4))
add("StackedRNNCells-list", lambda x: layers.RNN(stacked(), return_sequences=True)(x), (5, 4))
add("StackedRNNCells-state", lambda x: layers.RNN(stacked(), return_state=True)(x), (5, 4))
add("RNN-initial", lambda x, s: layers.RNN(layers.GRUCell(3))(x, initial_state=s), (5, 4), (3,))
add("RNN-any_length", lambda x: layers.RNN(layers.GRUCell(3), return_sequences=True)(x), (None, 4))
for mode in ("concat", "sum", "mul", "ave", None):
    add(
        f"Bidirectional-{mode}",
        lambda x, mode=mode: layers.Bidirectional(layers.GRU(3, return_sequences=True), merge_mode=mode)(x),
        (5, 4),
    )
add("Bidirectional-last", lambda x: layers.Bidirectional(layers.LSTM(3))(x), (5, 4))
add("Bidirectional-state", lambda x: layers.Bidirectional(layers.LSTM(3, return_state=True))(x), (5, 4))
add(
    "Bidirectional-two",
    lambda x: layers.Bidirectional(layers.LSTM(3), backward_layer=layers.GRU(2, go_backwards=True))(x),
    (5, 4),
)
add(
    "Bidirectional-mask",
    lambda x, m: layers.Bidirectional(layers.GRU(3, return_sequences=True))(x, mask=m),
    (5, 4),
    bools(5),
)
add("TimeDistributed-dense", lambda x: layers.TimeDistributed(layers.Dense(3))(x), (5, 4))
add("TimeDistributed-conv", lambda x: layers.TimeDistributed(layers.Conv2D(3, 3, activation="relu"))(x), (5, 6, 6, 2))
add("TimeDistributed-any_length", lambda x: layers.TimeDistributed(layers.Conv1D(3, 3))(x), (None, 6, 2))
add(
    "TimeDistributed-model",
    lambda x: layers.TimeDistributed(keras.Sequential([layers.Dense(4), layers.Flatten()]))(x),
    (5, 3, 2),
)
add(
    "TimeDistributed-mask",
    lambda t: layers.LSTM(3)(layers.TimeDistributed(layers.Dense(4))(embedded(t))),
    ints(5, high=3),
)
add("TimeDistributed-rnn", lambda x: layers.TimeDistributed(layers.LSTM(3))(x), (4, 5, 2))

# Masks through models
add("Masking-lstm", lambda x: layers.LSTM(3)(layers.Masking(0.0)(layers.ReLU()(x))), (5, 1))
add("Masking-plain", lambda x: layers.Masking(0.0)(layers.ReLU()(x)), (5, 2))
add("Masking-conv_lstm", lambda x: layers.ConvLSTM1D(3, 2)(x), (5, 4, 1))
add("GlobalAveragePooling1D-mask", lambda x, m: layers.GlobalAveragePooling1D()(x, mask=m), (5, 4), bools(5))
add("GlobalAveragePooling1D-implicit", lambda t: layers.GlobalAveragePooling1D()(embedded(t)), ints(5, high=4))
add("Embedding-mask_chain", lambda t: layers.GRU(3)(layers.Dropout(0.1)(layers.Dense(4)(embedded(t)))), ints(5, high=3))
add("Add-mask", lambda a, b: layers.GRU(3)(layers.Add()([embedded(a), embedded(b)])), ints(5, high=3), ints(5, high=3))
add(
    "Concatenate-mask",
    lambda a, b: layers.GRU(3)(layers.Concatenate()([embedded(a), embedded(b)])),
    ints(5, high=3),
    ints(5, high=3),
)
add(
    "Concatenate-mask_time",
    lambda a, b: layers.GRU(3)(layers.Concatenate(axis=1)([embedded(a), embedded(b)])),
    ints(5, high=3),
    ints(4, high=3),
)

# Categories
layer(
    "CategoryEncoding",
    ints(5),
    multi_hot={"num_tokens": 9},
    count={"num_tokens": 9, "output_mode": "count"},
    one_hot={"num_tokens": 9, "output_mode": "one_hot"},
)
layer("CategoryEncoding", ints(1), one={"num_tokens": 9, "output_mode": "one_hot"}, one_multi={"num_tokens": 9})
layer("CategoryEncoding", ints(), scalar={"num_tokens": 9, "output_mode": "one_hot"})
layer(
    "CategoryEncoding",
    ints(3, 5),
    rank3={"num_tokens": 9, "output_mode": "count"},
    rank3_one={"num_tokens": 9, "output_mode": "one_hot"},
)
add("CategoryEncoding-weights", lambda x, w: layers.CategoryEncoding(9, "count")(x, count_weights=w), ints(5), (5,))
BOUNDARIES = {"bin_boundaries": [-1.0, 0.0, 0.5]}
layer(
    "Discretization",
    (5,),
    int=BOUNDARIES,
    one_hot={**BOUNDARIES, "output_mode": "one_hot"},
    multi_hot={**BOUNDARIES, "output_mode": "multi_hot"},
    count={**BOUNDARIES, "output_mode": "count"},
)
layer("Discretization", (3, 5), rank3={**BOUNDARIES, "output_mode": "one_hot"})
layer("Discretization", ints(5), of_ints={"bin_boundaries": [2, 5]})

# Sound
layer(
    "STFTSpectrogram",
    (200, 1),
    log={"frame_length": 64, "frame_step": 32},
    magnitude={"mode": "magnitude", "frame_length": 50, "frame_step": 20, "fft_length": 64},
    psd={"mode": "psd", "frame_length": 64, "frame_step": 32, "padding": "same"},
    real={"mode": "real", "frame_length": 64, "frame_step": 32},
    imag={"mode": "imag", "frame_length": 64, "frame_step": 32, "window": "hamming"},
    angle={"mode": "angle", "frame_length": 64, "frame_step": 32},
    stft={"mode": "stft", "frame_length": 64, "frame_step": 32},
    wide={"frame_length": 64, "frame_step": 32, "expand_dims": True},
)
layer(
    "MelSpectrogram",
    (400,),
    plain={"fft_length": 128, "sequence_stride": 64, "sampling_rate": 8000, "num_mel_bins": 16},
    power={
        "fft_length": 128,
        "sequence_stride": 64,
        "sampling_rate": 8000,
        "num_mel_bins": 16,
        "power_to_db": False,
        "mag_exp": 1.0,
    },
)

# Types
for policy in ("mixed_float16", "mixed_bfloat16", "float16"):
    add(f"Dense-{policy}", lambda x, policy=policy: layers.Dense(5, dtype=policy)(x), (6,), tolerance=2e-2)
    add(f"Conv2D-{policy}", lambda x, policy=policy: layers.Conv2D(5, 3, dtype=policy)(x), (6, 6, 2), tolerance=2e-2)
