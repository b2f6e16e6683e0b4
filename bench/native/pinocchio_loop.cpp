// Native loops over Pinocchio's algorithms, called through ctypes by pinocchio_peer.py.
//
// Everything Pinocchio is instantiated here from its headers and nothing is linked from its precompiled library: that
// one is built for a baseline processor, with another Eigen alignment than -march=native has, and must not be mixed
// with this code. The machine arrives as text (pinocchio_peer.describe); states and answers are rows of doubles.

#include <pinocchio/algorithm/constrained-dynamics.hpp>
#include <pinocchio/algorithm/crba.hpp>
#include <pinocchio/algorithm/loop-constrained-aba.hpp>
#include <pinocchio/algorithm/rnea.hpp>
#include <pinocchio/multibody.hpp>

#include <Eigen/Cholesky>

#include <cmath>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace
{

using Eigen::VectorXd;

struct Triangle
{
  int boom, barrel, rod, actuator;
  double L, L1, x0, sigma, boom_zero, barrel_zero, turn;
};

struct Machine
{
  pinocchio::Model model;
  std::unique_ptr<pinocchio::Data> data;
  std::vector<pinocchio::RigidConstraintModel> pins;
  std::vector<pinocchio::RigidConstraintData> pin_data;
  std::unique_ptr<pinocchio::Data> lcaba_data;  // its elimination order lives in the data
  std::vector<pinocchio::RigidConstraintData> lcaba_pin_data;
  pinocchio::ProximalSettings proximal;
  pinocchio::ProximalSettings lcaba_proximal;
  std::vector<Triangle> triangles;
  std::vector<int> actuated;
  VectorXd q, v, a, tau;         // spanning tree
  VectorXd G, g;                 // tree coordinate i moves with actuator owner[i]: qdd = G xdd[owner] + g
  std::vector<int> owner;
  Eigen::MatrixXd M;             // in the actuators
  VectorXd rhs;
  Eigen::LLT<Eigen::MatrixXd> cholesky;
};

pinocchio::SE3 read_pose(std::istream & in)
{
  pinocchio::SE3 pose;
  for (int i = 0; i < 3; ++i)
    for (int j = 0; j < 3; ++j)
      in >> pose.rotation()(i, j);
  for (int i = 0; i < 3; ++i)
    in >> pose.translation()[i];
  return pose;
}

pinocchio::Inertia read_inertia(std::istream & in)
{
  double mass, xx, xy, yy, xz, yz, zz;
  Eigen::Vector3d centre;
  in >> mass >> centre[0] >> centre[1] >> centre[2] >> xx >> xy >> yy >> xz >> yz >> zz;
  return {mass, centre, pinocchio::Symmetric3(xx, xy, yy, xz, yz, zz)};
}

pinocchio::JointModel read_joint(std::istream & in)
{
  std::string kind;
  Eigen::Vector3d axis;
  in >> kind >> axis[0] >> axis[1] >> axis[2];
  if (kind == "JointModelRX") return pinocchio::JointModelRX();
  if (kind == "JointModelRY") return pinocchio::JointModelRY();
  if (kind == "JointModelRZ") return pinocchio::JointModelRZ();
  if (kind == "JointModelPX") return pinocchio::JointModelPX();
  if (kind == "JointModelPY") return pinocchio::JointModelPY();
  if (kind == "JointModelPZ") return pinocchio::JointModelPZ();
  if (kind == "JointModelRevoluteUnaligned") return pinocchio::JointModelRevoluteUnaligned(axis);
  if (kind == "JointModelPrismaticUnaligned") return pinocchio::JointModelPrismaticUnaligned(axis);
  throw std::runtime_error("joint type " + kind);
}

std::unique_ptr<Machine> read_machine(const std::string & text)
{
  auto machine = std::make_unique<Machine>();
  auto & model = machine->model;
  std::istringstream in(text);
  std::string word;
  while (in >> word)
  {
    if (word == "gravity")
    {
      auto g = model.gravity.linear();
      in >> g[0] >> g[1] >> g[2];
    }
    else if (word == "joint")
    {
      pinocchio::JointIndex parent;
      in >> parent;
      const auto joint = read_joint(in);
      const auto placement = read_pose(in);
      const auto index = model.addJoint(parent, joint, placement, "joint" + std::to_string(model.njoints));
      model.appendBodyToJoint(index, read_inertia(in));
    }
    else if (word == "pin")
    {
      pinocchio::JointIndex one, two;
      in >> one;
      const auto on_one = read_pose(in);
      in >> two;
      const auto on_two = read_pose(in);
      machine->pins.emplace_back(pinocchio::CONTACT_3D, model, one, on_one, two, on_two);
    }
    else if (word == "triangle")
    {
      Triangle t;
      in >> t.boom >> t.barrel >> t.rod >> t.actuator >> t.L >> t.L1 >> t.x0 >> t.sigma >> t.boom_zero
        >> t.barrel_zero >> t.turn;
      machine->triangles.push_back(t);
    }
    else if (word == "actuator")
    {
      int index;
      in >> index;
      machine->actuated.push_back(index);
    }
    else if (word == "proximal")
    {
      double mu;
      int iterations;
      in >> iterations >> mu;
      machine->proximal = pinocchio::ProximalSettings(0., 0., mu, iterations);
      in >> iterations >> mu;
      machine->lcaba_proximal = pinocchio::ProximalSettings(0., 0., mu, iterations);
    }
    else
      throw std::runtime_error("unknown word " + word);
    if (!in)
      throw std::runtime_error("the text ends within " + word);
  }
  return machine;
}

void prepare(Machine & m)
{
  m.data = std::make_unique<pinocchio::Data>(m.model);
  m.lcaba_data = std::make_unique<pinocchio::Data>(m.model);
  for (const auto & pin : m.pins)
  {
    m.pin_data.emplace_back(pin);
    m.lcaba_pin_data.emplace_back(pin);
  }
  pinocchio::initConstraintDynamics(m.model, *m.data, m.pins, m.pin_data);
  pinocchio::computeJointMinimalOrdering(m.model, *m.lcaba_data, m.pins);
  const auto nv = m.model.nv;
  const auto dof = static_cast<Eigen::Index>(m.actuated.size());
  m.q.setZero(nv), m.v.setZero(nv), m.a.setZero(nv), m.tau.setZero(nv);
  m.G.setOnes(nv), m.g.setZero(nv), m.owner.assign(nv, 0);
  for (int k = 0; k < dof; ++k)
    m.owner[m.actuated[k]] = k;
  for (const auto & t : m.triangles)
    m.owner[t.boom] = m.owner[t.barrel] = t.actuator;
  m.M.setZero(dof, dof), m.rhs.setZero(dof);
  m.cholesky = Eigen::LLT<Eigen::MatrixXd>(dof);
}

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

}  // extern "C"
