// Native loops over Pinocchio's algorithms, called through ctypes by pinocchio_peer.py.
//
// Everything Pinocchio is instantiated here from its headers and nothing is linked from its precompiled library: that
// one is built for a baseline processor, with another Eigen alignment than -march=native has, and must not be mixed
// with this code. The machine arrives as text (pinocchio_peer.describe); states and answers are rows of doubles.

#include "pinocchio_machine.hpp"

#include <pinocchio/algorithm/aba-derivatives.hpp>
#include <pinocchio/algorithm/constrained-dynamics-derivatives.hpp>
#include <pinocchio/algorithm/crba.hpp>
#include <pinocchio/algorithm/jacobian.hpp>
#include <pinocchio/algorithm/kinematics.hpp>
#include <pinocchio/algorithm/rnea.hpp>

#include <cmath>

namespace
{

// gamma, G and g: q and v of the tree, and the rates that make its accelerations.
void close_loops(Machine & m, const double * x, const double * xd)
{
  for (std::size_t k = 0; k < m.actuated.size(); ++k)
    m.q[m.actuated[k]] = x[k], m.v[m.actuated[k]] = xd[k];
  for (const auto & t : m.triangles)
  {
    const double s = m.q[t.rod] + t.x0, sd = m.v[t.rod];
    const double cos = (s * s - t.L * t.L - t.L1 * t.L1) / (2 * t.L * t.L1);
    const double sin = t.sigma * std::sqrt((1 - cos) * (1 + cos));
    const double k1 = -s / (t.L * t.L1 * sin);
    const double r = t.L1 * (t.L1 + t.L * cos) / (s * s);
    const double k4 = sd * sd * (k1 / s - k1 * k1 * cos / sin);
    m.q[t.boom] = std::atan2(sin, cos) - t.boom_zero;
    m.q[t.barrel] = t.turn * (std::atan2(t.L1 * sin, t.L + t.L1 * cos) - t.barrel_zero);
    m.G[t.boom] = k1;
    m.G[t.barrel] = t.turn * r * k1;
    m.v[t.boom] = k1 * sd;
    m.v[t.barrel] = m.G[t.barrel] * sd;
    m.g[t.boom] = k4;
    m.g[t.barrel] = t.turn * (sd / s * (1 - 2 * r) * k1 * sd + r * k4);
  }
}

// G' tau, one number for each actuator.
void project(const Machine & m, const VectorXd & tau, VectorXd & out)
{
  out.setZero();
  for (int i = 0; i < m.model.nv; ++i)
    out[m.owner[i]] += m.G[i] * tau[i];
}

void inverse(Machine & m, const double * x, const double * xd, const double * xdd, double * f)
{
  close_loops(m, x, xd);
  for (int i = 0; i < m.model.nv; ++i)
    m.a[i] = m.G[i] * xdd[m.owner[i]] + m.g[i];
  pinocchio::rnea(m.model, *m.data, m.q, m.v, m.a);
  project(m, m.data->tau, m.rhs);
  VectorXd::Map(f, m.rhs.size()) = m.rhs;
}

// (G' M G) xdd = f - G' (M g + bias); M g + bias is an inverse dynamics with accelerations g.
void forward(Machine & m, const double * x, const double * xd, const double * f, double * xdd)
{
  close_loops(m, x, xd);
  pinocchio::rnea(m.model, *m.data, m.q, m.v, m.g);
  project(m, m.data->tau, m.rhs);
  m.rhs = VectorXd::Map(f, m.rhs.size()) - m.rhs;
  pinocchio::crba(m.model, *m.data, m.q, pinocchio::Convention::WORLD);
  m.M.setZero();
  for (int j = 0; j < m.model.nv; ++j)
    for (int i = 0; i <= j; ++i)
    {
      const double entry = m.G[i] * m.G[j] * m.data->M(i, j);  // the upper triangle is what crba fills
      m.M(m.owner[i], m.owner[j]) += entry;
      if (i != j)
        m.M(m.owner[j], m.owner[i]) += entry;
    }
  m.cholesky.compute(m.M);
  m.cholesky.solveInPlace(m.rhs);
  VectorXd::Map(xdd, m.rhs.size()) = m.rhs;
}

// Rows of K, split by columns, and of the drift dK/dt qd, in world axes: point of one body minus that of the other.
void pin_jacobians(Machine & m)
{
  pinocchio::computeJointJacobians(m.model, *m.data, m.q);
  for (std::size_t k = 0; k < m.pins.size(); ++k)
  {
    const auto & pin = m.pins[k];
    const Eigen::Vector3d p = m.data->oMi[pin.joint1_id].act(pin.joint1_placement.translation());
    m.J1.setZero(), m.J2.setZero();
    if (pin.joint1_id > 0)
      pinocchio::getJointJacobian(m.model, *m.data, pin.joint1_id, pinocchio::WORLD, m.J1);
    if (pin.joint2_id > 0)
      pinocchio::getJointJacobian(m.model, *m.data, pin.joint2_id, pinocchio::WORLD, m.J2);
    m.J1 -= m.J2;
    m.J1.topRows<3>().noalias() -= pinocchio::skew(p) * m.J1.bottomRows<3>();
    for (std::size_t i = 0; i < m.dependent.size(); ++i)
      m.K_dependent.block<3, 1>(3 * k, i) = m.J1.col(m.dependent[i]).head<3>();
    for (std::size_t i = 0; i < m.coordinates.size(); ++i)
      m.K_coordinates.block<3, 1>(3 * k, i) = m.J1.col(m.coordinates[i]).head<3>();
  }
}

Eigen::Vector3d point_acceleration(const Machine & m, pinocchio::JointIndex joint, const Eigen::Vector3d & p)
{
  const auto v = m.data->oMi[joint].act(m.data->v[joint]);
  const auto a = m.data->oMi[joint].act(m.data->a[joint]);
  return a.linear() + a.angular().cross(p) + v.angular().cross(v.linear() + v.angular().cross(p));
}

// f = G' tau with the rates and accelerations that the loops ask for; q closes them already.
void inverse_of_closed(Machine & m, const double * q, const double * xd, const double * xdd, double * f)
{
  const auto freedom = static_cast<Eigen::Index>(m.coordinates.size());
  m.q = VectorXd::Map(q, m.model.nv);
  pin_jacobians(m);
  m.qr.compute(m.K_dependent);
  const Eigen::MatrixXd G = m.qr.solve(m.K_coordinates);
  for (std::size_t i = 0; i < m.dependent.size(); ++i)
    m.full_G.row(m.dependent[i]) = -G.row(i);
  m.v.noalias() = m.full_G * VectorXd::Map(xd, freedom);
  m.a.setZero();
  pinocchio::forwardKinematics(m.model, *m.data, m.q, m.v, m.a);
  for (std::size_t k = 0; k < m.pins.size(); ++k)
  {
    const auto & pin = m.pins[k];
    const Eigen::Vector3d p = m.data->oMi[pin.joint1_id].act(pin.joint1_placement.translation());
    m.drift.segment<3>(3 * k) = point_acceleration(m, pin.joint1_id, p) - point_acceleration(m, pin.joint2_id, p);
  }
  const VectorXd g = m.qr.solve(m.drift);
  m.a.noalias() = m.full_G * VectorXd::Map(xdd, freedom);
  for (std::size_t i = 0; i < m.dependent.size(); ++i)
    m.a[m.dependent[i]] -= g[i];
  pinocchio::rnea(m.model, *m.data, m.q, m.v, m.a);
  VectorXd::Map(f, freedom).noalias() = m.full_G.transpose() * m.data->tau;
}

void load_tree_state(Machine & m, const double * q, const double * v, const double * tau)
{
  const auto nv = m.model.nv;
  m.q = VectorXd::Map(q, nv), m.v = VectorXd::Map(v, nv), m.tau = VectorXd::Map(tau, nv);
}

std::string last_error;

}  // namespace

extern "C"
{

__attribute__((visibility("default"))) void * machine_open(const char * text)
{
  try
  {
    auto machine = read_machine(text);
    prepare(*machine);
    return machine.release();
  }
  catch (const std::exception & error)
  {
    last_error = error.what();
    return nullptr;
  }
}

__attribute__((visibility("default"))) const char * machine_error() { return last_error.c_str(); }

__attribute__((visibility("default"))) void machine_close(void * machine)
{
  delete static_cast<Machine *>(machine);
}

__attribute__((visibility("default"))) void constraint_dynamics(
  void * machine, int count, const double * q, const double * v, const double * tau, double * a)
{
  auto & m = *static_cast<Machine *>(machine);
  const auto nv = m.model.nv;
  for (int k = 0; k < count; ++k)
  {
    load_tree_state(m, q + k * nv, v + k * nv, tau + k * nv);
    VectorXd::Map(a + k * nv, nv) = pinocchio::constraintDynamics(
      m.model, *m.data, m.q, m.v, m.tau, m.pins, m.pin_data, m.proximal);
  }
}

__attribute__((visibility("default"))) void lcaba(
  void * machine, int count, const double * q, const double * v, const double * tau, double * a)
{
  auto & m = *static_cast<Machine *>(machine);
  const auto nv = m.model.nv;
  for (int k = 0; k < count; ++k)
  {
    load_tree_state(m, q + k * nv, v + k * nv, tau + k * nv);
    VectorXd::Map(a + k * nv, nv) = pinocchio::lcaba(
      m.model, *m.lcaba_data, m.q, m.v, m.tau, m.pins, m.lcaba_pin_data, m.lcaba_proximal);
  }
}

__attribute__((visibility("default"))) void projected_forward(
  void * machine, int count, const double * x, const double * xd, const double * f, double * xdd)
{
  auto & m = *static_cast<Machine *>(machine);
  const auto dof = m.actuated.size();
  for (int k = 0; k < count; ++k)
    forward(m, x + k * dof, xd + k * dof, f + k * dof, xdd + k * dof);
}

__attribute__((visibility("default"))) void projected_inverse(
  void * machine, int count, const double * x, const double * xd, const double * xdd, double * f)
{
  auto & m = *static_cast<Machine *>(machine);
  const auto dof = m.actuated.size();
  for (int k = 0; k < count; ++k)
    inverse(m, x + k * dof, xd + k * dof, xdd + k * dof, f + k * dof);
}

__attribute__((visibility("default"))) void closed_inverse(
  void * machine, int count, const double * q, const double * xd, const double * xdd, double * f)
{
  auto & m = *static_cast<Machine *>(machine);
  const auto nv = m.model.nv;
  const auto dof = m.coordinates.size();
  for (int k = 0; k < count; ++k)
    inverse_of_closed(m, q + k * nv, xd + k * dof, xdd + k * dof, f + k * dof);
}

// Jacobians: for each state d qdd / dq, d qdd / dv, d qdd / dtau, each nv x nv by columns.
__attribute__((visibility("default"))) void constraint_derivatives(
  void * machine, int count, const double * q, const double * v, const double * tau, double * jacobians)
{
  auto & m = *static_cast<Machine *>(machine);
  const auto nv = m.model.nv;
  for (int k = 0; k < count; ++k, jacobians += 3 * nv * nv)
  {
    load_tree_state(m, q + k * nv, v + k * nv, tau + k * nv);
    pinocchio::constraintDynamics(m.model, *m.data, m.q, m.v, m.tau, m.pins, m.pin_data, m.proximal);
    pinocchio::computeConstraintDynamicsDerivatives(m.model, *m.data, m.pins, m.pin_data, m.proximal);
    Eigen::MatrixXd::Map(jacobians, nv, nv) = m.data->ddq_dq;
    Eigen::MatrixXd::Map(jacobians + nv * nv, nv, nv) = m.data->ddq_dv;
    Eigen::MatrixXd::Map(jacobians + 2 * nv * nv, nv, nv) = m.data->ddq_dtau;
  }
}

__attribute__((visibility("default"))) void aba_derivatives(
  void * machine, int count, const double * q, const double * v, const double * tau, double * jacobians)
{
  auto & m = *static_cast<Machine *>(machine);
  const auto nv = m.model.nv;
  for (int k = 0; k < count; ++k, jacobians += 3 * nv * nv)
  {
    load_tree_state(m, q + k * nv, v + k * nv, tau + k * nv);
    pinocchio::computeABADerivatives(m.model, *m.data, m.q, m.v, m.tau);
    Eigen::MatrixXd::Map(jacobians, nv, nv) = m.data->ddq_dq;
    Eigen::MatrixXd::Map(jacobians + nv * nv, nv, nv) = m.data->ddq_dv;
    auto inverse_of_mass = Eigen::MatrixXd::Map(jacobians + 2 * nv * nv, nv, nv);
    inverse_of_mass.triangularView<Eigen::Upper>() = m.data->Minv;
    inverse_of_mass.triangularView<Eigen::StrictlyLower>() = m.data->Minv.transpose();
  }
}

}  // extern "C"
