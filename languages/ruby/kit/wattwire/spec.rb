# frozen_string_literal: true

module Wattwire
  # A run's spec (C-02), whose fields are generated from the schema.
  class Spec
    BYTE = /25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d/
    IPV4 = /\A#{BYTE}(?:\.#{BYTE}){3}\z/
    private_constant :BYTE, :IPV4

    # Returns the spec in the file at `path`.
    def self.read(path)
      spec = new(Values.read(path))
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
    SETTINGS = {
      'declared.string_settings' => String, 'declared.integer_settings' => Integer,
      'declared.boolean_settings' => [true, false].method(:include?)
    }.freeze

    # Returns the values of the file at `path`.
    def self.read(path)
      document = JSON.parse(File.read(path, encoding: 'UTF-8'))
      unless document.is_a?(Hash)
        raise Refused.new(BAD_SPEC, '--spec', '--spec: allowed: a JSON object')
      end

      check_contract(document['contract'])
      new(document)
    rescue JSON::ParserError, SystemCallError => error
      reason = "--spec: #{error.message[0, 200]}; allowed: a file with a JSON object"
      raise Refused.new(BAD_SPEC, '--spec', reason)
    end

    def self.check_contract(version)
      return if version == CONTRACT

      reason = "contract: found #{version.inspect}; allowed: #{CONTRACT}"
      raise Refused.new(BAD_SPEC, 'contract', reason)
    end
    private_class_method :check_contract

    def initialize(document)
      @document = document
      @untaken = document.dup
      @settings = {}
    end

    def string(key) = take(key, String)
    def integer(key) = take(key, Integer)
    def strings(key) = take(key, LISTS[String])
    def integers(key) = take(key, LISTS[Integer])

    # Returns the declared settings, name => value.
    def settings
      SETTINGS.each do |key, type|
        @document[key].each { |name| @settings[name] = take("settings.#{name}", type) }
      end
      @settings
    end

    # Returns the supported values of the settings that have a list. Refuses all keys that remain.
    def allowed
      keys = @settings.keys.to_h { |name| [name, "declared.allowed.#{name}"] }
      keys.select! { |_, key| @untaken.key?(key) }
      values = keys.transform_values { |key| take(key, Array) }
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
      reason = "#{key}: found #{value.inspect}; allowed: C-02's keys and types, and the settings " \
               "#{@settings.keys.join(', ')}"
      raise Refused.new(BAD_SPEC, key, reason)
    end
  end
end
