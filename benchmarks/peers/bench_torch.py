"""PyTorch heads: what a competent user writes. Variants: eager | compile (full p_c, Algorithm 1) ;
lse | lse_compile (loss only needs p_y: logsumexp form, softmax models) ; stream (one-pass custom autograd over chunks of samples);
exact (sigmoid models: no sampling, p_c = sum_i w_i Phi(l_i m/sqrt(1+l_i^2 s^2)), 8 terms)."""
from common import *
a = parse(["eager", "compile", "compile_fr", "lse", "lse_compile", "stream", "exact"])
import math
import torch, torch.nn as nn, torch.nn.functional as F
torch.set_num_threads(a.threads); torch.manual_seed(0)
MIN_SCALE, EPS = 1e-3, 1e-7
PW = [0.0005427281842707028, 0.011583353676487277, 0.06432265872345966, 0.17231744331637577, 0.2843855068110844, 0.2937976898492081, 0.15175069039645098, 0.021299929042663007]
PL = [0.22581005640455723, 0.2849916094463311, 0.3544281776755389, 0.4405847404498443, 0.5516821587273436, 0.6994038062800194, 0.9011986939793666, 1.1914905789376655]

class HetHead(nn.Module):
    def __init__(s, D, K, R, cov):
        super().__init__()
        s.K, s.R, s.cov = K, R, cov
        s.loc, s.diag = nn.Linear(D, K), nn.Linear(D, K)
        if cov == "full": s.scale = nn.Linear(D, K * R)
        if cov == "pe": s.v = nn.Linear(D, K); s.V = nn.Parameter(torch.randn(K, R) / R ** 0.5)
    def params(s, x):
        mu, d = s.loc(x), F.softplus(s.diag(x)) + MIN_SCALE
        if s.cov == "full": return mu, d, s.scale(x).view(-1, s.K, s.R)
        if s.cov == "pe": return mu, d, s.v(x)
        return mu, d, None
    def samples(s, x, S):  # [B,S,K]
        mu, d, V = s.params(x)
        B = x.shape[0]
        u = mu.unsqueeze(1) + d.unsqueeze(1) * torch.randn(B, S, s.K)
        if s.cov == "full": u = torch.baddbmm(u, torch.randn(B, S, s.R), V.transpose(1, 2))
        if s.cov == "pe": u = u + V.unsqueeze(1) * F.linear(torch.randn(B, S, s.R), s.V)
        return u

class StreamNLL(torch.autograd.Function):
    """Softmax full covariance: one pass over chunks of samples, [B,C,K] never stored for all S.
    Gradients are accumulated unscaled in forward and multiplied by -1/(S tau p_y B) in backward."""
    @staticmethod
    def forward(ctx, mu, d, V, y, S, tau, chunk):
        B, K, R = V.shape
        py = torch.zeros(B); gmu = torch.zeros(B, K); gd = torch.zeros(B, K); gV = torch.zeros(B, K, R)
        yi = y.view(B, 1, 1)
        for c in range(0, S, chunk):
            n = min(chunk, S - c)
            ek, er = torch.randn(B, n, K), torch.randn(B, n, R)
            u = torch.baddbmm((mu.unsqueeze(1) + d.unsqueeze(1) * ek), er, V.transpose(1, 2))
            p = torch.softmax(u.div_(tau), -1)
            psy = p.gather(2, yi.expand(B, n, 1)); py += psy.sum((1, 2))
            g = p.mul_(-psy).scatter_add_(2, yi.expand(B, n, 1), psy)
            gmu += g.sum(1); gd += torch.einsum("bsk,bsk->bk", g, ek); gV.baddbmm_(g.transpose(1, 2), er)
        py /= S
        ctx.save_for_backward(gmu, gd, gV, -1.0 / (S * tau * py * B))
        return -py.log().mean()
    @staticmethod
    def backward(ctx, go):
        gmu, gd, gV, w = ctx.saved_tensors
        w = w * go
        return w[:, None] * gmu, w[:, None] * gd, w[:, None, None] * gV, None, None, None, None

xn, yn = data(a); x, y = torch.from_numpy(xn), torch.from_numpy(yn)
kind, cov = (a.model.split("_") if not a.model.startswith("homo") else (a.model.split("_")[1], "homo"))
net = nn.Linear(a.D, a.K) if cov == "homo" else HetHead(a.D, a.K, a.R, cov)
tau = a.tau

def loss_fn(x, y):
    if cov == "homo":
        l = net(x)
        return F.cross_entropy(l, y) if kind == "softmax" else F.binary_cross_entropy_with_logits(l, y)
    if a.variant == "stream":
        mu, d, V = net.params(x); return StreamNLL.apply(mu, d, V, y, a.S, tau, 50)
    if a.variant == "exact":
        mu, d, V = net.params(x); v2 = d * d
        if cov == "full": v2 = v2 + V.square().sum(-1)
        if cov == "pe": v2 = v2 + V.square() * net.V.square().sum(-1)
        p = 0
        for w, l in zip(PW, PL): p = p + (0.5 * w) * torch.erfc(mu * (-l / (2 ** 0.5 * tau)) * torch.rsqrt(1 + v2 * (l / tau) ** 2))
        return F.binary_cross_entropy(p.clamp(EPS, 1 - EPS), y)
    u = net.samples(x, a.S) / tau
    if kind == "softmax":
        if a.variant.startswith("lse"):
            lp = u[torch.arange(a.B), :, y] - torch.logsumexp(u, -1)          # [B,S]
            return -(torch.logsumexp(lp, 1) - math.log(a.S)).mean()
        p = torch.softmax(u, -1).mean(1).clamp_min(EPS)
        return F.nll_loss(p.log(), y)
    p = torch.sigmoid(u).mean(1).clamp(EPS, 1 - EPS)
    return F.binary_cross_entropy(p, y)

if a.variant == "compile_fr":  # keep the eager (fast, MT19937) RNG instead of inductor's
    import torch._inductor.config as ic; ic.fallback_random = True
f = torch.compile(loss_fn) if "compile" in a.variant else loss_fn
def step():
    net.zero_grad(set_to_none=True)
    l = f(x, y); l.backward(); return l.item()
guard(a)
try: measure(a, step)
except Exception as e: emit(a, error=repr(e)[:300]); sys.exit(2)
