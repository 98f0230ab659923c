# SPDX-License-Identifier: Apache-2.0
"""Small programs in the manner of tutorials. Run with the name of a module: prints what each of them prints.

The last one switches eager execution off for good.
"""

import importlib
import sys

import numpy as np

PROGRAMS = []
PROGRAMS.append(
    """
# Mandelbrot of the tutorials
Y, X = np.mgrid[-1.3:1.3:0.05, -2:1:0.05]
Z = X+1j*Y
xs = tf.constant(Z.astype(np.complex64)); zs = tf.Variable(xs); ns = tf.Variable(tf.zeros_like(xs, tf.float32))
for i in range(10):
    zs_ = zs*zs + xs
    not_diverged = tf.abs(zs_) < 4
    zs.assign(zs_); ns.assign_add(tf.cast(not_diverged, tf.float32))
print(ns.numpy().sum())
"""
)
PROGRAMS.append(
    """
with tf.Graph().as_default():
    x = tf.compat.v1.placeholder(tf.float32, shape=(None, 3), name='in')
    W = tf.Variable(tf.ones([3,2]), name='W'); b = tf.Variable(tf.zeros([2]))
    y = tf.nn.relu(tf.matmul(x, W) + b)
    loss = tf.reduce_mean(tf.square(y - 1.0))
    init = tf.compat.v1.global_variables_initializer()
    with tf.compat.v1.Session() as sess:
        sess.run(init)
        print(sess.run([y, loss], feed_dict={x: np.ones((2,3))}))
        print(sess.run(W).shape, x.name, W.name, b.name, y.name, y.shape, [v.name for v in tf.compat.v1.trainable_variables()])
        sess.run(b.assign([1.,2.])); print(sess.run(b), b.eval(), W.eval(session=sess).sum())
"""
)
PROGRAMS.append(
    """
a = tf.constant([[1,2],[3,4]]); print(a); print(a.shape, a.dtype, a.shape[0], a.shape.as_list(), tf.rank(a).numpy())
print(repr(a), a.numpy().tolist()); print(tf.reduce_sum(a, axis=1).numpy(), [int(x) for x in tf.reshape(a,[-1])])
for row in a: print(row.numpy())
print(a[0,1].numpy(), a[...,None].shape, len(a))
print(f"{tf.constant(2.5):.1f} {tf.reduce_max(a)}", str(tf.constant([1.5])), tf.constant(True), tf.constant("hi"))
print(np.array(a)+1, np.sum(a), np.dot(a,a), a.numpy().T.tolist(), max(tf.constant([1,5,2])).numpy())
"""
)
PROGRAMS.append(
    """
@tf.function(input_signature=[tf.TensorSpec([None], tf.float32)])
def f(x): return tf.reduce_sum(x**2), {'m': tf.reduce_mean(x)}
print(f(tf.constant([1.,2,3])), f([1.,2.]))
@tf.function
def g(n):
    s = 0
    for i in range(n): s += i
    return tf.constant(s)
print(g(5), g(6))
class M(tf.Module):
    def __init__(self): super().__init__(); self.w=tf.Variable(2.0,name='w')
    @tf.function
    def __call__(self,x): return x*self.w
m=M(); print(m(tf.constant(3.0)), len(m.variables)); m.w.assign(5.0); print(m(tf.constant(3.0)))
"""
)
PROGRAMS.append(
    """
try: tf.constant([1,2])+tf.constant([1,2,3])
except tf.errors.InvalidArgumentError as e: print('IAE', e.error_code)
try: tf.matmul(tf.ones([2]),tf.ones([2]))
except Exception as e: print(type(e).__name__)
try: tf.constant([1,2]).foo
except AttributeError as e: print('AE')
try: tf.Variable([1.]).assign([1,2,3])
except ValueError as e: print('VE')
x=tf.Variable([1.,2.,3.]); print(x[1].numpy(), (x+1).numpy(), x.shape, x.dtype, tf.reduce_sum(x).numpy(), x.numpy(), np.asarray(x), -x, x>1)
print(tf.is_tensor(x), tf.is_tensor(1), isinstance(tf.constant(1), tf.Tensor), isinstance(x, tf.Variable), tf.executing_eagerly())
"""
)
PROGRAMS.append(
    """
x = tf.range(10); ds = tf.split(x, 5); print([d.numpy().tolist() for d in ds]);
print(tf.concat([x,x],0).shape, tf.stack([1,2,3]).numpy(), tf.one_hot([0,1],2).numpy().tolist(), tf.cast(x, tf.float32)/3)
print(tf.where(x>5, x, -x), tf.gather(x,[1,2]), tf.boolean_mask(x, x%2==0), tf.unique([1,1,2]).y)
print(tf.linalg.norm(tf.constant([3.,4.])), tf.math.reduce_std([1.,2.]), tf.argmax([1,9,3]), tf.sort([3,1,2]), tf.math.top_k([1,3,2],2).indices)
tf.random.set_seed(1); r=tf.random.uniform([3]); print(r.shape, r.dtype, tf.random.normal((2,2)).shape, tf.random.uniform([],maxval=5,dtype=tf.int32).dtype)
print(tf.ones(3), tf.zeros((2,)), tf.fill((2,2),3.), tf.eye(2), tf.linspace(0.,1.,3), tf.ones_like([1,2]), tf.zeros(()) )
print(tf.transpose([[1,2],[3,4]]), tf.tensordot([1.,2.],[3.,4.],1), tf.einsum('ij,jk->ik',tf.ones([2,2]),tf.ones([2,2])), tf.add(1,2), tf.multiply([1,2],3), tf.reduce_all([True,False]))
"""
)
PROGRAMS.append(
    """
g = tf.Graph()
with g.as_default():
    with tf.name_scope('layer1'):
        a = tf.constant(2.0, name='a'); b = tf.constant(3.0, name='b'); c = tf.multiply(a, b, name='c')
    d = c * 2 - a / b
    print(a.name, c.name, d.name, c.op.name, c.op.type, [t.name for t in c.op.inputs], g.get_tensor_by_name('layer1/c:0') is c)
    print(c, a.graph is g, tf.compat.v1.get_default_graph() is g)
with tf.compat.v1.Session(graph=g) as sess: print(sess.run(d), sess.run('layer1/c:0'), sess.run({'x':a,'y':[b,c]}))
"""
)
PROGRAMS.append(
    """
tf.compat.v1.disable_eager_execution()
x = tf.compat.v1.placeholder(tf.float32); y = x*2
i = tf.Variable(0); inc = tf.compat.v1.assign_add(i, 1)
with tf.compat.v1.Session() as s:
    s.run(tf.compat.v1.global_variables_initializer())
    print(s.run(y, {x: 3}), s.run(y, {x: [1,2]}), [int(s.run(inc)) for _ in range(3)], y.shape)
    with tf.control_dependencies([inc]): z = tf.identity(i)
    print(s.run(z), tf.compat.v1.get_default_session() is s, x.op.type)
"""
)


if __name__ == "__main__":
    tf = importlib.import_module(sys.argv[1])
    for number, program in enumerate(PROGRAMS):
        print("#", number)
        exec(program, {"tf": tf, "np": np})
