// The machine of the native loops over Pinocchio, read from the text that pinocchio_peer.describe writes.

#pragma once

#include <pinocchio/algorithm/constrained-dynamics.hpp>
#include <pinocchio/algorithm/loop-constrained-aba.hpp>
#include <pinocchio/multibody.hpp>

#include <Eigen/Cholesky>
#include <Eigen/QR>

#include <algorithm>
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
  // Loops of any kind: K qd = 0 holds the pins together.
  std::vector<int> coordinates, dependent;
  Eigen::MatrixXd J1, J2, K_dependent, K_coordinates, full_G;
  VectorXd drift;
  Eigen::ColPivHouseholderQR<Eigen::MatrixXd> qr;
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
    else if (word == "coordinate")
    {
      int index;
      in >> index;
      machine->coordinates.push_back(index);
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

void prepare_any_loops(Machine & m)
{
  const auto nv = m.model.nv;
  const auto rows = static_cast<Eigen::Index>(3 * m.pins.size());
  const auto freedom = static_cast<Eigen::Index>(m.coordinates.size());
  for (int i = 0; i < nv; ++i)
    if (std::find(m.coordinates.begin(), m.coordinates.end(), i) == m.coordinates.end())
      m.dependent.push_back(i);
  m.J1.setZero(6, nv), m.J2.setZero(6, nv), m.drift.setZero(rows);
  m.K_dependent.setZero(rows, nv - freedom), m.K_coordinates.setZero(rows, freedom);
  m.full_G.setZero(nv, freedom);
  m.qr.setThreshold(1e-9);  // pins of plane loops hold their plane more often than needed
  for (Eigen::Index k = 0; k < freedom; ++k)
    m.full_G(m.coordinates[k], k) = 1;
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
  prepare_any_loops(m);
}

}  // namespace
