-- /etc/slurm/job_submit.lua, or a part of it, with JobSubmitPlugins=lua.
-- A change after which a waiting job is another one (its limit, partition, account ...) takes the side-car's TimeMin away, and the
-- side-car looks at the job anew. Put the number of the side-car's user into the first list: of other users' jobs it may change TimeMin,
-- and raise limits, and nothing else. Nobody but it, root, and operators in the second list, may set TimeMin.
local sidecars = { }
local operators = { [0] = true }
local unset = { [slurm.NO_VAL] = true, [slurm.NO_VAL16 or 65534] = true, [slurm.NO_VAL64 or -2] = true, [254] = true, [""] = true }
local function is_set(value)
  return value ~= nil and not unset[value]
end
local matters = { "partition", "qos", "account", "dependency", "reservation", "licenses" }
local others = { "partition", "qos", "account", "dependency", "reservation", "licenses", "features", "req_nodes", "exc_nodes", "comment",
  "admin_comment", "name", "wckey", "priority", "nice", "begin_time", "min_nodes", "max_nodes", "deadline", "burst_buffer" }
local times = { begin_time = true, deadline = true }
function slurm_job_submit(job, partitions, uid)
  if not operators[uid] and not sidecars[uid] and is_set(job.time_min) then
    slurm.log_user("--time-min is reserved for the scheduler")
    return slurm.ERROR
  end
  return slurm.SUCCESS
end
function slurm_job_modify(job, record, partitions, uid)
  local sets_time_min = is_set(job.time_min)
  if sets_time_min and job.time_min ~= 0 and not operators[uid] and not sidecars[uid] then
    slurm.log_user("TimeMin is reserved for the scheduler")
    return slurm.ERROR
  end
  if sidecars[uid] and record.user_id ~= uid then
    for _, name in ipairs(others) do
      if is_set(job[name]) and not (job[name] == 0 and times[name]) then
        slurm.log_user("the side-car may not change " .. name)
        return slurm.ERROR
      end
    end
    if is_set(job.time_limit) and job.time_limit < record.time_limit then
      slurm.log_user("the side-car may not lower limits")
      return slurm.ERROR
    end
  end
  local changes = is_set(job.time_limit)
  for _, name in ipairs(matters) do
    changes = changes or is_set(job[name])
  end
  if changes and not sets_time_min then
    job.time_min = 0
  end
  return slurm.SUCCESS
end
return slurm.SUCCESS
