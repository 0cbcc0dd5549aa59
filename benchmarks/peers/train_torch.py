"""The training loop of a low-rank head on embeddings, as a competent user writes it in PyTorch:
shuffled batches of a matrix in memory, Algorithm 1 of the paper in eager mode, Adam with L2 on
the weights, a cosine schedule, loss and accuracy read at every step. One line of JSON."""
import argparse, json, math, time
import numpy as np
import torch, torch.nn as nn, torch.nn.functional as F

p = argparse.ArgumentParser()
p.add_argument("features"); p.add_argument("labels")
p.add_argument("--classes", type=int, default=10); p.add_argument("--rank", type=int, default=6)
p.add_argument("--samples", type=int, default=1000); p.add_argument("--batch", type=int, default=128)
p.add_argument("--steps", type=int, default=200); p.add_argument("--threads", type=int, default=2)
a = p.parse_args()
torch.set_num_threads(a.threads); torch.manual_seed(0)
x = torch.from_numpy(np.load(a.features).astype(np.float32)); y = torch.from_numpy(np.load(a.labels).astype(np.int64))
x = (x - x.mean(0)) / (x - x.mean(0)).square().mean().sqrt()
N, D = x.shape; K, R, S = a.classes, a.rank, a.samples
mean, diag, load = nn.Linear(D, K), nn.Linear(D, K), nn.Linear(D, K * R)
decayed = lambda layer, l2: [dict(params=[layer.weight], weight_decay=l2), dict(params=[layer.bias], weight_decay=0.0)]
optimizer = torch.optim.Adam(decayed(mean, 1e-2) + decayed(diag, 1.5e-2) + decayed(load, 1.5e-2), lr=5e-3)
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, a.steps)
order = torch.randperm(N).repeat(1 + a.steps * a.batch // N)

def step(i):
    rows = order[i * a.batch:(i + 1) * a.batch]
    xb, yb = x[rows], y[rows]
    mu, d, V = mean(xb), diag(xb), load(xb).view(-1, K, R)
    u = mu.unsqueeze(1) + d.unsqueeze(1) * torch.randn(len(rows), S, K)
    u = torch.baddbmm(u, torch.randn(len(rows), S, R), V.transpose(1, 2))
    log_p = torch.logsumexp(F.log_softmax(u, -1), 1) - math.log(S)
    loss = F.nll_loss(log_p, yb)
    optimizer.zero_grad(); loss.backward(); optimizer.step(); schedule.step()
    return float(loss), float((mu.argmax(1) == yb).float().mean())

for i in range(5): step(i)
start = time.perf_counter()
for i in range(5, a.steps): step(i)
seconds = time.perf_counter() - start
print(json.dumps(dict(examples_per_second=(a.steps - 5) * a.batch / seconds)))
