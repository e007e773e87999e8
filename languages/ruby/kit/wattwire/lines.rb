# frozen_string_literal: true

# The dialogue with the harness: descriptor 3 and standard input (C-05, C-08, C-09).
class Wattwire::Lines
  attr_reader :start_ns, :stop_ns # nil until GO and STOP came

  def initialize
    @out = IO.for_fd(3, 'w')
    @out.close_on_exec = true
    @lock, @changed = Mutex.new, ConditionVariable.new
    trap('TERM', 'SYSTEM_DEFAULT') # ends a process that is blocked in native code, too
  end

  def line(keyword, fields)
    @lock.synchronize { @out.syswrite("#{keyword} #{JSON.generate(fields)}\n") }
  end

  # Prints ERROR and ends the process at once, whatever the middleware is doing.
  def fail(code, key, reason)
    line('ERROR', { code: code, key: key, reason: reason.scrub })
  ensure
    exit!(code)
  end

  def listen
    Thread.new do
      $stdin.each_line { |text| obey(text.split) }
      exit!(5)
    end
  end

  def await_go = @lock.synchronize { @changed.wait(@lock) until @start_ns || @stop_ns }

  def await_stop = @lock.synchronize { @changed.wait(@lock) until @stop_ns }

  # False where STOP came first.
  def sleep_until(due_ns, spin_ns)
    while @stop_ns.nil? && (left_ns = due_ns - spin_ns - Wattwire.now).positive?
      @lock.synchronize { @changed.wait(@lock, left_ns / 1e9) unless @stop_ns }
    end
    Thread.pass while @stop_ns.nil? && Wattwire.now < due_ns # a reply's thread may run meanwhile
    @stop_ns.nil?
  end

  private

  def obey(words)
    case words
    in ['STOP'] then @stop_ns ||= Wattwire.now
    in ['GO', /\A\d+\z/ => start]
      fail(2, 'GO', "GO: found #{start}, in the past; allowed: the future") if start.to_i < Wattwire.now
      @start_ns = start.to_i
    else fail(2, words.first, "found #{words.join(' ')}; allowed: GO <start_ns>, STOP")
    end
    @lock.synchronize { @changed.broadcast }
  end
end
