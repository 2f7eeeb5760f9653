; The sum of the input, modulo 2^64.
;   r1 input's address, r2 its words, r3 first free address
        set   r5, 0            ; sum
        add   r6, r1, r2       ; end of the input
next:   jeq   r1, r6, done
        load  r7, r1, 0
        add   r5, r5, r7
        addi  r1, r1, 1
        jump  next
done:   store r5, r3, 0
        set   r8, 1
        halt  r3, r8
