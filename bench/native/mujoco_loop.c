/* Native loops over MuJoCo, called through ctypes by mujoco_peer.py with the addresses of its mjModel and mjData. */

#include <mujoco/mujoco.h>

#include <string.h>

static void load_state(const mjModel* m, mjData* d, const double* q, const double* v)
{
  memcpy(d->qpos, q, m->nq * sizeof(double));
  memcpy(d->qvel, v, m->nv * sizeof(double));
}

void forward(const mjModel* m, mjData* d, int count, const double* q, const double* v, const double* tau, double* a)
{
  for (int k = 0; k < count; ++k)
  {
    load_state(m, d, q + k * m->nq, v + k * m->nv);
    memcpy(d->qfrc_applied, tau + k * m->nv, m->nv * sizeof(double));
    mj_forward(m, d);
    memcpy(a + k * m->nv, d->qacc, m->nv * sizeof(double));
  }
}

void inverse(const mjModel* m, mjData* d, int count, const double* q, const double* v, const double* a, double* tau)
{
  for (int k = 0; k < count; ++k)
  {
    load_state(m, d, q + k * m->nq, v + k * m->nv);
    memcpy(d->qacc, a + k * m->nv, m->nv * sizeof(double));
    mj_inverse(m, d);
    memcpy(tau + k * m->nv, d->qfrc_inverse, m->nv * sizeof(double));
  }
}
