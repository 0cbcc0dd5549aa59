"""Noise on the features (HET-XL) as a competent JAX user writes it: the paper's Algorithm 1 with the
noise of u in the space of the features, compiled as a whole; every feature has its own draw."""
from common import *
a = parse(["jit"])
import jax, jax.numpy as jnp

SHAPES = dict(mean=(a.D, a.K), diag=(a.D, a.D), scale=(a.D, a.D))
keys = jax.random.split(jax.random.key(0), len(SHAPES) + 2)
params = {name: (jax.random.normal(key, shape) / a.D ** 0.5, jnp.zeros(shape[1]))
          for key, (name, shape) in zip(keys, SHAPES.items())}
params["shared"] = jax.random.normal(keys[-1], (a.D, a.R)) / a.R ** 0.5
x, y = map(jnp.asarray, data(a))


def dense(params, x):
    weight, bias = params
    return x @ weight + bias


def loss(params, key):
    own, factors = jax.random.split(key)
    own = jax.random.normal(own, (a.B, a.S, a.D))
    factors = jax.random.normal(factors, (a.B, a.S, a.R))
    diag = jax.nn.softplus(dense(params["diag"], x)) + 1e-3
    noise = diag[:, None] * own + dense(params["scale"], x)[:, None] * (factors @ params["shared"].T)
    utility = dense(params["mean"], x[:, None] + noise) / a.tau
    log_p = jax.nn.log_softmax(utility)[jnp.arange(a.B), :, y]
    return -(jax.nn.logsumexp(log_p, 1) - jnp.log(a.S)).mean()


both = jax.jit(jax.value_and_grad(loss))
count = 0


def step():
    global count
    count += 1
    value, grads = both(params, jax.random.key(count))
    jax.block_until_ready(grads)
    return float(value)


guard(a)
measure(a, step)
