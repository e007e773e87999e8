# frozen_string_literal: true

# A node of wattwire in Ruby: contract/CONTRACT.md has its duties, ../README.md the API.
module Wattwire
  # Returns the ns of CLOCK_MONOTONIC.
  def self.now = Process.clock_gettime(Process::CLOCK_MONOTONIC, :nanosecond)

  START_NS = now # before the libraries are loaded: startup_ns counts from here (C-07)
end

require 'json'
require_relative 'wattwire/constants'
require_relative 'wattwire/errors'
require_relative 'wattwire/dialogue'
require_relative 'wattwire/spec'
require_relative 'wattwire/declaration'
require_relative 'wattwire/messages'
require_relative 'wattwire/samples'
require_relative 'wattwire/schedule'
require_relative 'wattwire/sender'
require_relative 'wattwire/arrivals'
require_relative 'wattwire/kit'

# The process of a node.
module Wattwire
  # Runs this node and ends the process. `roles`: role => callable that gets the kit.
  def self.run(roles)
    dialogue = Dialogue.new
    check_names(roles)
    spec_path, out = read_arguments(ARGV)
    spec = Spec.read(spec_path)
    Declaration.new(spec, roles.keys).check
    dialogue.listen
    kit = Kit.new(spec, dialogue)
    roles[spec.role].call(kit)
    kit.finish(out)
    $stdout.flush
    exit!(0) # a library's exit handlers must not delay the end beyond the contract's second
  rescue Refused => error
    dialogue.fail(error.exit_code, error.key, error.message)
  rescue Exception => error # rubocop:disable Lint/RescueException
    warn error.full_message(highlight: false)
    dialogue.fail(MIDDLEWARE_FAILED, nil, "#{error.class}: #{error.message}")
  end

  # Refuses a key that is no role, such as `settings` of contract version 2.
  def self.check_names(roles)
    others = roles.keys.map(&:to_s) - ROLES.keys
    return if others.empty?

    allowed = "#{ROLES.keys.join(', ')}; the manifests declare the rest"
    raise Refused.new(BAD_SPEC, 'run()', "found #{others.join(', ')}; allowed: #{allowed}")
  end
  private_class_method :check_names

  # Returns the paths of the spec and of the output folder (C-01).
  def self.read_arguments(words)
    options = words.each_slice(2).sort
    if words.size != 4 || options.map(&:first) != %w[--out --spec]
      reason = "found #{words.join(' ')}; allowed: --spec FILE --out DIR"
      raise Refused.new(BAD_SPEC, 'command line', reason)
    end
    [options[1][1], options[0][1]]
  end
  private_class_method :read_arguments
end
