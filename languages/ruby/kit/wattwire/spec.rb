# frozen_string_literal: true

module Wattwire
  # Types of settings, besides String and Integer.
  BOOLEAN = [true, false].method(:include?)

  # A run's spec (C-02), whose fields are generated from the schema.
  class Spec
    BYTE = /25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d/
    IPV4 = /\A#{BYTE}(?:\.#{BYTE}){3}\z/
    private_constant :BYTE, :IPV4

    # Returns the spec in the file at `path`; `settings`: name => type.
    def self.read(path, settings)
      spec = new(Values.read(path, settings))
      unless spec.contract == CONTRACT
        reason = "contract: found #{spec.contract}; allowed: #{CONTRACT}"
        raise Refused.new(BAD_SPEC, 'contract', reason)
      end
      check_address('host.address', spec.host_address)
      spec.peers_addresses.each { |address| check_address('peers.addresses', address) }
      spec
    end

    # Refuses a text that is no IPv4 address (C-38).
    def self.check_address(key, address)
      return if IPV4.match?(address)

      reason = "#{key}: found #{address.inspect}; allowed: an IPv4 address"
      raise Refused.new(BAD_SPEC, key, reason)
    end
    private_class_method :check_address
  end

  # The values of a spec's JSON object (C-02). Spec takes them by key once, at the start.
  #
  # The harness has checked the values, so only those of another type are refused.
  class Values
    LISTS = [String, Integer].to_h do |type|
      [type, ->(value) { value.is_a?(Array) && value.all?(type) }]
    end.freeze

    # Returns the values of the file at `path`; `settings`: name => type.
    def self.read(path, settings)
      document = JSON.parse(File.read(path, encoding: 'UTF-8'))
      return new(document, settings) if document.is_a?(Hash)

      raise Refused.new(BAD_SPEC, '--spec', '--spec: allowed: a JSON object')
    rescue JSON::ParserError, SystemCallError => error
      reason = "--spec: #{error.message[0, 200]}; allowed: a file with a JSON object"
      raise Refused.new(BAD_SPEC, '--spec', reason)
    end

    def initialize(document, setting_types)
      @untaken = document.dup
      @setting_types = setting_types
    end

    def string(key) = take(key, String)
    def integer(key) = take(key, Integer)
    def strings(key) = take(key, LISTS[String])
    def integers(key) = take(key, LISTS[Integer])

    # Returns the settings, name => value. Refuses all keys that remain.
    def settings
      values = @setting_types.to_h { |name, type| [name, take("settings.#{name}", type)] }
      @untaken.each_key { |key| refuse(key, @untaken[key]) }
      values
    end

    private

    def take(key, type)
      value = @untaken.delete(key)
      case value
      when type then value
      else refuse(key, value)
      end
    end

    def refuse(key, value)
      reason = "#{key}: found #{value.inspect}; allowed: C-02's keys and types"
      raise Refused.new(BAD_SPEC, key, reason)
    end
  end
end
