# frozen_string_literal: true

require 'grpc'
require 'web/caller'
require_relative 'messages'
require 'wattwire_services_pb'

# The client: one channel for all calls, or a channel for each call.
class Client < Web::Caller
  def initialize(kit)
    super
    @shape = Messages.shape(kit.spec)
    @endpoint = kit.spec.peers_endpoints.fetch(0)
    @channel = channel if @keep
    @stub = stub(@channel) if @channel
  end

  # Returns the reply, nil at the deadline; raises SendFailed if the call failed (C-36).
  def call(message, timeout_s, _worker)
    opened = channel unless @channel
    stub = @stub || stub(opened)
    deadline = GRPC::Core::TimeConsts.from_relative_time(timeout_s)
    reply = stub.public_send(@shape.procedure, @shape.to_wire.call(message), deadline: deadline)
    @shape.from_wire.call(reply)
  rescue GRPC::DeadlineExceeded
    nil
  rescue GRPC::BadStatus => error
    raise Wattwire::SendFailed, error.message
  ensure
    opened&.close
  end

  def library = { name: 'grpc', version: GRPC::VERSION }

  def effective = { tls: @authority.empty? ? 'none' : 'on' }

  private

  def channel
    # Channels to one address share a connection unless each has a local pool.
    arguments = { 'grpc.use_local_subchannel_pool' => 1 }
    GRPC::Core::Channel.new(@endpoint, arguments, credentials)
  end

  def stub(channel)
    Wattwire::Calls::Stub.new(@endpoint, credentials, channel_override: channel)
  end

  def credentials
    return :this_channel_is_insecure if @authority.empty?

    @credentials ||= GRPC::Core::ChannelCredentials.new(File.read(@authority))
  end
end
